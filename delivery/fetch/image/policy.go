package image

import (
	"context"
	"fmt"
	"math/big"
	"regexp"
	"regexp/syntax"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/few"
)

// maxPatternCost bounds the cost of a filter's pattern for each letter of a tag, in steps of its program.
const maxPatternCost = 250

// tagChooser is a parsed image policy.
type tagChooser struct {
	// of is the policy.
	of *v1alpha1.ImagePolicy
	// filter costs at most that many steps for each letter.
	filter  *regexp.Regexp
	steps   int
	extract string
	// parse returns the rank of a text; false leaves the tag out.
	parse func(text string) (tagRank, bool)
	// lowest chooses the lowest instead of the highest.
	lowest bool
	// wants describes the policy for a message; policy identifies it.
	wants, policy string
}

// tagRank orders tags.
type tagRank interface{ compare(other tagRank) int }

type (
	versionRank struct{ *semver.Version }
	numberRank  struct{ *big.Rat }
	textRank    string
)

func (r versionRank) compare(o tagRank) int { return r.Compare(o.(versionRank).Version) }
func (r numberRank) compare(o tagRank) int  { return r.Cmp(o.(numberRank).Rat) }
func (r textRank) compare(o tagRank) int    { return strings.Compare(string(r), string(o.(textRank))) }

// newTagChooser parses a policy. An invalid field is named in an ErrInvalid.
func newTagChooser(p *v1alpha1.ImagePolicy) (*tagChooser, error) {
	c := &tagChooser{of: p, policy: fmt.Sprintf("%q %q %q", p.SemVer, p.Alphabetical, p.Numerical)}
	switch {
	case p.SemVer != "":
		wanted, err := semver.NewConstraint(p.SemVer)
		if err != nil {
			return nil, failure.New(failure.ErrInvalid, "policy.semver %q is not a range of versions, such as \"^1.2\" or \">=1.2.0 <2.0.0\"", few.Quote(p.SemVer))
		}
		c.wants = "semver " + few.Quote(p.SemVer)
		c.parse = func(text string) (tagRank, bool) { return versionIn(wanted, text) }
	case p.Numerical != "":
		c.wants, c.parse, c.lowest = "numbers", number, p.Numerical == v1alpha1.TagsDescending
	default:
		c.wants, c.lowest = "any text", p.Alphabetical == v1alpha1.TagsDescending
		c.parse = func(text string) (tagRank, bool) { return textRank(text), true }
	}
	if p.FilterTags == nil {
		return c, nil
	}
	filter, steps, err := compilePattern(p.FilterTags.Pattern)
	if err != nil {
		return nil, err
	}
	c.filter, c.steps, c.extract = filter, steps, p.FilterTags.Extract
	c.policy += fmt.Sprintf(" %q %q", p.FilterTags.Pattern, p.FilterTags.Extract)
	c.wants = fmt.Sprintf("tags that match %s, of them %s", few.Quote(p.FilterTags.Pattern), c.wants)
	return c, nil
}

// compilePattern refuses an expression with repetitions that make its program expensive to store and to run.
func compilePattern(pattern string) (filter *regexp.Regexp, steps int, err error) {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, 0, failure.New(failure.ErrInvalid, "policy.filterTags.pattern is not a regular expression (RE2): %s", few.Quote(err.Error()))
	}
	if steps = cost(parsed); steps > maxPatternCost {
		return nil, 0, failure.New(failure.ErrInvalid, "policy.filterTags.pattern stands for more than the limit of %d steps, its repetitions written out", maxPatternCost)
	}
	filter, err = regexp.Compile(pattern)
	return filter, steps, err
}

// cost estimates the length of an expression with its repetitions written out; beyond the limit the result is any number above it.
func cost(e *syntax.Regexp) int {
	sum := 1
	if e.Op == syntax.OpLiteral {
		sum = len(e.Rune)
	}
	for _, sub := range e.Sub {
		sum += cost(sub)
	}
	if e.Op == syntax.OpRepeat {
		sum *= max(1, e.Min, e.Max)
	}
	return min(sum, maxPatternCost+1)
}

// versionIn requires all three numbers: a tag such as "1.2" or "20240131" is not a version; such tags move, or mean a day.
func versionIn(wanted *semver.Constraints, text string) (tagRank, bool) {
	version, err := semver.StrictNewVersion(strings.TrimPrefix(text, "v"))
	if err != nil || !wanted.Check(version) {
		return nil, false
	}
	return versionRank{version}, true
}

// decimal excludes exponents: a few digits of them make numbers that fill any memory.
var decimal = regexp.MustCompile(`^-?[0-9]+(\.[0-9]+)?$`)

func number(text string) (tagRank, bool) {
	if !decimal.MatchString(text) {
		return nil, false
	}
	value, ok := new(big.Rat).SetString(text)
	return numberRank{value}, ok
}

// accepts reports whether the policy would choose the tag if it were the only one.
func (c *tagChooser) accepts(tag string) bool {
	_, ok := c.rank(tag)
	return ok
}

func (c *tagChooser) rank(tag string) (tagRank, bool) {
	if c.filter == nil {
		return c.parse(tag)
	}
	match := c.filter.FindStringSubmatchIndex(tag)
	if match == nil {
		return nil, false
	}
	if c.extract != "" {
		tag = string(c.filter.ExpandString(nil, c.extract, tag, match))
	}
	return c.parse(tag)
}

// choose returns the tag that the policy selects. If two are equal, such as v1.0.0 and 1.0.0, their text decides, so that the result is
// stable. If no tag matches, the error is ErrNoTag with the number of tags.
func (c *tagChooser) choose(ctx context.Context, tags []string) (string, error) {
	var best tagRank
	var chosen string
	for n, tag := range tags {
		if n%1000 == 0 && ctx.Err() != nil {
			return "", ctx.Err()
		}
		rank, ok := c.rank(tag)
		if !ok {
			continue
		}
		if best == nil || c.before(best, chosen, rank, tag) {
			best, chosen = rank, tag
		}
	}
	if best == nil {
		return "", failure.New(failure.ErrNoTag, "none of the %d tags is what the policy wants: %s", len(tags), c.wants)
	}
	return chosen, nil
}

// before reports whether the tag is preferred to the best one so far.
func (c *tagChooser) before(best tagRank, chosen string, rank tagRank, tag string) bool {
	order := rank.compare(best)
	if order == 0 {
		return tag > chosen
	}
	return (order > 0) != c.lowest
}
