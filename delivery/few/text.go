package few

import (
	"strings"
	"unicode"
)

// Cut returns a text of at most n characters, which is at least 1: the whole text, or its beginning and "…". Invalid UTF-8 becomes U+FFFD. Mask a
// text before you cut it, because half a secret is not recognized.
func Cut(text string, n int) string {
	text = strings.ToValidUTF8(text, string(unicode.ReplacementChar))
	characters := []rune(text)
	if len(characters) <= n {
		return text
	}
	return strings.TrimRightFunc(string(characters[:n-1]), unicode.IsSpace) + "…"
}

// Line returns a text from a server or a tenant as one line of at most n characters that is safe to quote in a message. White space, with line
// breaks, becomes one blank; what else is not Printable becomes U+FFFD.
func Line(text string, n int) string {
	return Cut(Printable(strings.Join(strings.Fields(text), " ")), n)
}

// Quote returns a Line of at most 200 characters.
func Quote(text string) string { return Line(text, 200) }

// Printable replaces control characters, line breaks and invalid UTF-8 with U+FFFD, so that a message stays on one line. It keeps the length of
// names and paths, which may contain any bytes.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' {
			return unicode.ReplacementChar
		}
		return r
	}, strings.ToValidUTF8(text, string(unicode.ReplacementChar)))
}
