package pawl

import (
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
	"regexp"
	"strings"
)

// fingerprint tells one kind of error from another: it is the same for errors of
// one kind of job whose texts differ in numbers, ids, times, addresses and the
// like. It is made when it is asked for and stored nowhere, so that a better one
// may be found later; it is not to be kept.
func fingerprint(kind, text string) string {
	sum := sha256.Sum256([]byte(kind + "\x00" + shape(text)))
	return hex.EncodeToString(sum[:8])
}

var (
	mailPattern    = regexp.MustCompile(`[\w.+-]+@[\w-]+(?:\.[\w-]+)+`)
	ipv6Pattern    = regexp.MustCompile(`[0-9A-Fa-f]*:[0-9A-Fa-f.]*:[0-9A-Fa-f:.]*`)
	wordPattern    = regexp.MustCompile(`[\pL\pN]+`)
	digitsPattern  = regexp.MustCompile(`\pN+`)
	hexPattern     = regexp.MustCompile(`^[0-9A-Fa-f]{8,}$`)
	letterDigits   = regexp.MustCompile(`^\pL{1,11}\pN{1,6}$`)
	joinedPattern  = regexp.MustCompile(`#(?:[-:.,/_+ ]{0,2}#)+`)
	signPattern    = regexp.MustCompile(`(^|[\s(=\[,])[-+]#`)
	spacesPattern  = regexp.MustCompile(`\s+`)
	decimalPattern = regexp.MustCompile(`\pN`)
)

// shape is a text without what differs from one time to the next: what has a
// digit in it is "#", but for the name before the number, as in s3, user42 or
// http2, and what is joined to it by signs alone goes with it.
func shape(text string) string {
	text = mailPattern.ReplaceAllString(text, "#")
	text = ipv6Pattern.ReplaceAllStringFunc(text, func(s string) string {
		if _, err := netip.ParseAddr(strings.TrimRight(s, ":.")); err == nil {
			return "#"
		}
		return s
	})
	text = wordPattern.ReplaceAllStringFunc(text, func(word string) string {
		switch {
		case hexPattern.MatchString(word):
			return "#"
		case !decimalPattern.MatchString(word):
			return word
		case letterDigits.MatchString(word):
			return digitsPattern.ReplaceAllString(word, "#")
		}
		return "#"
	})
	text = joinedPattern.ReplaceAllString(text, "#")
	text = signPattern.ReplaceAllString(text, "$1#")
	return strings.TrimSpace(spacesPattern.ReplaceAllString(text, " "))
}
