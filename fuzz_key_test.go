package pawl

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// unkey takes a key apart again. That there is such a function at all, for any
// parts, is what "unambiguous" means.
func unkey(key string) (parts []string) {
	if key == "" {
		return nil
	}
	var part strings.Builder
	for i := 0; i < len(key); i++ {
		switch key[i] {
		case ':':
			parts = append(parts, part.String())
			part.Reset()
		case '\\':
			i++
			if key[i] != 'e' { // the empty part
				part.WriteByte(key[i])
			}
		default:
			part.WriteByte(key[i])
		}
	}
	return append(parts, part.String())
}

// partsOf cuts text into parts of any content: each byte of cuts is a length.
func partsOf(text string, cuts []byte) (parts []string) {
	for _, n := range cuts[:min(len(cuts), 64)] {
		n := min(int(n), len(text))
		parts, text = append(parts, text[:n]), text[n:]
	}
	return append(parts, text)
}

func keyOfTexts(parts []string) string {
	list := make([]any, len(parts))
	for i, p := range parts {
		list[i] = p
	}
	return Key(list...)
}

func FuzzKey(f *testing.F) {
	for _, s := range []string{"", ":", `\`, `\:`, `:\`, `\\`, `\e`, "e", `a:b`, `a\:b`, `a\\:b`, "::", `\e:\e`, "\x00", "\xff\xfe", "order42", "é:ü"} {
		f.Add(s, []byte{}, s, []byte{1})
		f.Add(s, []byte{0}, s, []byte{})
		f.Add(s+s, []byte{1, 0, 1}, s+s, []byte{0, 1, 1})
	}
	f.Add("abc", []byte{1}, "abc", []byte{2})
	f.Add("a:b", []byte{1, 0}, "a:b", []byte{})
	f.Add(`a\`, []byte{1}, `a\\`, []byte{1})
	f.Add("\\e", []byte{}, "", []byte{})
	f.Fuzz(func(t *testing.T, text1 string, cuts1 []byte, text2 string, cuts2 []byte) {
		a, b := partsOf(text1, cuts1), partsOf(text2, cuts2)
		require.NotEmpty(t, keyOfTexts(a), "an empty key would mean the arguments")
		require.Equal(t, a, unkey(keyOfTexts(a)))
		require.Equal(t, slices.Equal(a, b), keyOfTexts(a) == keyOfTexts(b))
		require.Equal(t, keyOfTexts(a), Key(asAny(a)...), "[]byte, and pointers, are as strings")
	})
}

func asAny(parts []string) (list []any) {
	for i, p := range parts {
		if i%2 == 0 {
			list = append(list, []byte(p))
		} else {
			list = append(list, &p)
		}
	}
	return list
}
