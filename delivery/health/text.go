package health

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/kubeop/kubeop/delivery/few"
)

// maxText is how many characters of quoted text a message has.
const maxText = 300

// text returns a foreign text on one line, masked and without control characters. It is masked before it is cut, because masking does not
// recognize half a secret.
func (e Explainer) text(written string) string { return shortened(oneLine(e.masked(written))) }

// stableText returns text without the parts that differ each time the same problem is reported.
func (e Explainer) stableText(written string) string {
	return shortened(withoutVolatile(oneLine(e.masked(written))))
}

// lastWords returns the last nonempty line.
func (e Explainer) lastWords(written string) string {
	lines := e.lines(written)
	slices.Reverse(lines)
	return firstOf(lines)
}

// firstWords returns the first nonempty line.
func (e Explainer) firstWords(written string) string { return firstOf(e.lines(written)) }

func (e Explainer) lines(written string) []string {
	return strings.Split(strings.ReplaceAll(e.masked(written), "\r", "\n"), "\n")
}

func firstOf(lines []string) string {
	for _, line := range lines {
		if line = withoutVolatile(oneLine(line)); line != "" {
			return shortened(line)
		}
	}
	return ""
}

func (e Explainer) masked(written string) string {
	if e.Mask == nil {
		return written
	}
	return e.Mask(written)
}

// escape matches a terminal's color or cursor command (ECMA-48). It is removed as a whole: without its first character, the rest would be
// readable garbage.
var escape = regexp.MustCompile(`\x1b\[[0-9;?]*[A-Za-z]`)

func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == unicode.ReplacementChar:
			return -1
		}
		return r
	}, escape.ReplaceAllString(s, ""))
	return strings.Join(strings.Fields(s), " ")
}

func shortened(s string) string { return few.Cut(s, maxText) }

// volatile matches the parts that differ between two reports of the same: times, in the forms that loggers write; the header of klog with
// its process; seconds since 1970; random identifiers; addresses in memory; the port that a connection came from.
var volatile = regexp.MustCompile(strings.Join([]string{
	`\b[IWEF]\d{4} \d{2}:\d{2}:\d{2}\.\d+ +\d+ `,
	`\b\d{4}[-/]\d{2}[-/]\d{2}[T ]\d{2}:\d{2}:\d{2}(?:[.,]\d+)?(?: ?(?:Z\b|UTC\b|[+-]\d{2}:?\d{2}\b))?`,
	`\b\d{2}:\d{2}:\d{2}(?:[.,]\d+)?\b`,
	`\b1\d{9}(?:\d{3})?(?:\.\d+)?\b`,
	`\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`,
	`\b[0-9a-f]{32,}\b`,
	`\b0x[0-9a-f]+\b`,
	`:\d{4,5}->`,
}, "|"))

// leading matches the rest of a removed time at the beginning of a line.
var leading = regexp.MustCompile(`^(?:[\[(]?…[\])]?[ :|,-]*)+`)

func withoutVolatile(s string) string {
	return leading.ReplaceAllString(volatile.ReplaceAllStringFunc(s, func(found string) string {
		if strings.HasSuffix(found, "->") {
			return "->"
		}
		return "…"
	}), "")
}
