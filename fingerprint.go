package pawl

import (
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
	"regexp"
	"strings"
	"unicode"
)

// fingerprint tells one kind of error from another: it is the same for errors of
// one kind of job whose texts differ in numbers, ids, times, addresses and the
// like. It is made when it is asked for and stored nowhere, so that a better one
// may be found later; it is not to be kept.
func fingerprint(kind, text string) string {
	sum := sha256.Sum256([]byte(kind + "\x00" + shape(text)))
	return hex.EncodeToString(sum[:8])
}

// isFingerprint reports whether fingerprint may have made a text.
func isFingerprint(text string) bool {
	return len(text) == 16 && strings.Trim(text, "0123456789abcdef") == ""
}

// maxShape is how much of a shape counts. A text that was cut at 4 KiB was cut at
// another word where an id before it was longer.
const maxShape = 2 << 10

const (
	dayName   = `(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*`
	monthName = `(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*`
	unitName  = `(?:[KMGTPkmgt]?i?B|bytes?|[nuµμm]?s|h|min|(?:milli)?seconds?|secs?|minutes?|mins?|hours?|days?|AM|PM)`
)

var (
	mailPattern = regexp.MustCompile(`[\pL\pN_.+-]+@[\pL\pN_-]+(?:\.[\pL\pN_-]+)+`)
	uuidPattern = regexp.MustCompile(`[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}`)
	datePattern = regexp.MustCompile(`(?:\b` + dayName + `,? +)?(?:\b\d{1,2}[ -]` + monthName + `[ -]\d{2,4}|\b` + monthName + ` +\d{1,2})\b`)
	ipv6Pattern = regexp.MustCompile(`[0-9A-Fa-f]*:[0-9A-Fa-f.]*:[0-9A-Fa-f:.]*`)
	// An id behind a prefix, as cus_8f3Kd2; and a token, as of base64.
	prefixedPattern = regexp.MustCompile(`([a-z]{2,8}_)([0-9A-Za-z]{6,})`)
	tokenPattern    = regexp.MustCompile(`[0-9A-Za-z+/_-]{16,}={0,2}`)
	// The names of pods: letters and digits that spell no word.
	podPattern    = regexp.MustCompile(`-[b-df-hj-np-tv-xz0-9]{8,10}-[b-df-hj-np-tv-xz2-9]{5}\b`)
	wordPattern   = regexp.MustCompile(`[\pL\pN]+`)
	digitsPattern = regexp.MustCompile(`\pN+`)
	hexPattern    = regexp.MustCompile(`^[0-9A-Fa-f]{7,}$`)
	namedPattern  = regexp.MustCompile(`^\pL{1,11}\pN{1,6}$`)
	hostPattern   = regexp.MustCompile(`\[#(?:%[\pL\pN#]+)?\]:#`)
	joinedPattern = regexp.MustCompile(`#(?:[-:.,/_+ ]{0,2}#)+`)
	unitPattern   = regexp.MustCompile(`# ?` + unitName + `\b`)
	signPattern   = regexp.MustCompile(`(^|[\s(=\[,])[-+]#`)
)

// shape is a text without what differs from one time to the next: what has a
// digit in it is "#", but for the name before the number, as in s3, user42 or
// http2, and what is joined to it by signs alone goes with it.
func shape(text string) string {
	if strings.Contains(text, "@") { // to look is much cheaper than to match
		text = mailPattern.ReplaceAllString(text, "#")
	}
	text = uuidPattern.ReplaceAllString(text, "#")
	text = datePattern.ReplaceAllString(text, "#")
	if strings.Count(text, ":") > 1 {
		text = ipv6Pattern.ReplaceAllStringFunc(text, func(s string) string {
			if _, err := netip.ParseAddr(strings.TrimRight(s, ":.")); err == nil && strings.ContainsFunc(s, unicode.IsDigit) {
				return "#"
			}
			return s
		})
	}
	text = podPattern.ReplaceAllString(text, "-#")
	text = prefixedPattern.ReplaceAllStringFunc(text, func(s string) string {
		prefix, id, _ := strings.Cut(s, "_")
		if turns(id) < 3 {
			return s
		}
		return prefix + "_#"
	})
	text = tokenPattern.ReplaceAllStringFunc(text, func(s string) string {
		if 2*turns(s) < len(s) || !strings.ContainsFunc(s, unicode.IsDigit) {
			return s
		}
		return "#"
	})
	text = wordPattern.ReplaceAllStringFunc(text, func(word string) string {
		hasDigit := strings.ContainsFunc(word, unicode.IsNumber)
		switch {
		case hexPattern.MatchString(word) && (hasDigit || len(word) > 7):
			return "#"
		case !hasDigit:
			return word
		case namedPattern.MatchString(word):
			return digitsPattern.ReplaceAllString(word, "#")
		}
		return "#"
	})
	text = joinedPattern.ReplaceAllString(text, "#")
	text = hostPattern.ReplaceAllString(text, "#")
	text = unitPattern.ReplaceAllString(text, "#")
	text = signPattern.ReplaceAllString(text, "$1#")
	text = strings.Join(strings.Fields(text), " ")
	return text[:min(len(text), maxShape)]
}

// turns is how often a text goes from capitals to small letters or to digits, or
// back: random letters do so all the time, names seldom.
func turns(text string) (n int) {
	var last rune
	for _, r := range text {
		class := 'a'
		switch {
		case r >= '0' && r <= '9':
			class = '0'
		case r >= 'A' && r <= 'Z':
			class = 'A'
		case r < 'a' || r > 'z':
			continue
		}
		if last != 0 && class != last {
			n++
		}
		last = class
	}
	return n
}
