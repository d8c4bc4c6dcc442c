package image

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
)

func TestThePolicyChoosesTheTag(t *testing.T) {
	semver := func(want string) *v1alpha1.ImagePolicy { return &v1alpha1.ImagePolicy{SemVer: want} }
	filtered := func(p *v1alpha1.ImagePolicy, pattern, extract string) *v1alpha1.ImagePolicy {
		p.FilterTags = &v1alpha1.TagFilter{Pattern: pattern, Extract: extract}
		return p
	}
	tests := map[string]struct {
		policy *v1alpha1.ImagePolicy
		tags   string
		want   string
		err    string
	}{
		"the highest version": {policy: semver("^1.2"), tags: "1.2.0 1.10.0 1.9.9 2.0.0 1.1.0 latest", want: "1.10.0"},
		"with a v":            {policy: semver("*"), tags: "v1.0.0 v1.1.0", want: "v1.1.0"},
		"equal versions":      {policy: semver("*"), tags: "1.0.0 v1.0.0", want: "v1.0.0"},
		"tags that move":      {policy: semver(">=1.0.0"), tags: "1 1.2 1.2.0 20261120 3", want: "1.2.0"},
		"no pre-release":      {policy: semver(">=1.0.0"), tags: "1.0.0 1.1.0-rc.1", want: "1.0.0"},
		"a pre-release":       {policy: semver(">=1.0.0-0"), tags: "1.0.0 1.1.0-rc.1 1.1.0-rc.10", want: "1.1.0-rc.10"},
		"version in a tag":    {policy: filtered(semver("1.x"), `^web-(?P<v>.*)$`, "$v"), tags: "web-1.2.0 api-1.9.0 web-1.3.0", want: "web-1.3.0"},
		"the last letter":     {policy: &v1alpha1.ImagePolicy{Alphabetical: v1alpha1.TagsAscending}, tags: "a c b", want: "c"},
		"the first letter":    {policy: &v1alpha1.ImagePolicy{Alphabetical: v1alpha1.TagsDescending}, tags: "b a c", want: "a"},
		"the highest number":  {policy: &v1alpha1.ImagePolicy{Numerical: v1alpha1.TagsAscending}, tags: "9 10 2.5 x", want: "10"},
		"the lowest number":   {policy: &v1alpha1.ImagePolicy{Numerical: v1alpha1.TagsDescending}, tags: "9 10 -2.5 x", want: "-2.5"},
		"long numbers": {policy: &v1alpha1.ImagePolicy{Numerical: v1alpha1.TagsAscending},
			tags: "90071992547409931 90071992547409932", want: "90071992547409932"},
		"number in a tag": {policy: filtered(&v1alpha1.ImagePolicy{Numerical: v1alpha1.TagsAscending}, "^main-[a-f0-9]+-(?P<ts>[0-9]+)$", "$ts"),
			tags: "main-abc-9 main-def-10 other-fff-11 main-abc-x", want: "main-def-10"},
		"exponents": {policy: &v1alpha1.ImagePolicy{Numerical: v1alpha1.TagsAscending}, tags: "1e999999999 3", want: "3"},

		"nothing matches": {policy: filtered(semver("^2"), "^rel-", ""), tags: "1.0.0 2.0.0 3",
			err: "none of the 3 tags is what the policy wants: tags that match ^rel-, of them semver ^2"},
		"no tags":        {policy: semver("*"), err: "none of the 0 tags is what the policy wants: semver *"},
		"no range":       {policy: semver("newest"), err: `policy.semver "newest" is not a range of versions, such as "^1.2" or ">=1.2.0 <2.0.0"`},
		"no pattern":     {policy: filtered(semver("*"), "(", ""), err: "policy.filterTags.pattern is not a regular expression (RE2): error parsing regexp: missing closing ): `(`"},
		"a costly one":   {policy: filtered(semver("*"), "(abcdefgh){900}", ""), err: "policy.filterTags.pattern stands for more than the limit of 250 steps, its repetitions written out"},
		"a digest":       {policy: filtered(&v1alpha1.ImagePolicy{Alphabetical: v1alpha1.TagsAscending}, "^[a-f0-9]{64}$", ""), tags: strings.Repeat("a", 64), want: strings.Repeat("a", 64)},
		"a negated look": {policy: filtered(semver("*"), "(?!a)", ""), err: "policy.filterTags.pattern is not a regular expression (RE2): error parsing regexp: invalid or unsupported Perl syntax: `(?!`"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			chooser, err := newTagChooser(tc.policy)
			var got string
			if err == nil {
				got, err = chooser.choose(t.Context(), strings.Fields(tc.tags))
			}
			if message(err) != tc.err || got != tc.want {
				t.Errorf("got %q and %v, want %q and %q", got, err, tc.want, tc.err)
			}
			if err == nil && !chooser.accepts(got) {
				t.Errorf("%s would not be taken alone", got)
			}
		})
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestChoosingEndsWithTheContext(t *testing.T) {
	chooser, err := newTagChooser(&v1alpha1.ImagePolicy{Alphabetical: v1alpha1.TagsAscending})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := chooser.choose(ctx, []string{"a"}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// The most expensive allowed pattern, with as many tags as allowed, must not occupy a worker for long.
func TestTheMostExpensivePatternIsBounded(t *testing.T) {
	chooser, err := newTagChooser(&v1alpha1.ImagePolicy{
		Alphabetical: v1alpha1.TagsAscending, FilterTags: &v1alpha1.TagFilter{Pattern: "(a|aa|a?){20}x"},
	})
	if err != nil {
		t.Fatal(err)
	}
	tags := make([]string, maxTags/500)
	for n := range tags {
		tags[n] = strings.Repeat("a", 128)
	}
	began := time.Now()
	if _, err := chooser.choose(t.Context(), tags); !errors.Is(err, failure.ErrNoTag) {
		t.Errorf("got %v", err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("a five-hundredth of the tags took %s", took)
	}
}

func FuzzChooseTag(f *testing.F) {
	f.Add(">=1.0.0", `^(?P<v>.*)$`, "$v", "1.0.0")
	f.Add("", "a{2}", "", "aa")
	f.Fuzz(func(t *testing.T, semver, pattern, extract, tag string) {
		if len(pattern) > 512 || len(tag) > 128 {
			return
		}
		for _, p := range []*v1alpha1.ImagePolicy{{SemVer: semver}, {Numerical: v1alpha1.TagsAscending}, {Alphabetical: v1alpha1.TagsDescending}} {
			p.FilterTags = &v1alpha1.TagFilter{Pattern: pattern, Extract: extract}
			chooser, err := newTagChooser(p)
			if err != nil {
				if !errors.Is(err, failure.ErrInvalid) {
					t.Errorf("%v is not ErrInvalid", err)
				}
				continue
			}
			if got, err := chooser.choose(t.Context(), []string{tag, "1.0.0"}); err == nil && got != tag && got != "1.0.0" {
				t.Errorf("chose %q", got)
			}
		}
	})
}

// TestThePolicyIsCheckedInTheProcessToo: an error is no choice, and that no tag fits is no error of the process.
func TestThePolicyIsCheckedInTheProcessToo(t *testing.T) {
	for name, tc := range map[string]struct{ input, want, err string }{
		"a tag":         {`{"Policy": {"semver": "^1"}, "Tags": ["1.0.0", "2.0.0"]}`, `{"Tag":"1.0.0","None":""}`, ""},
		"no tag":        {`{"Policy": {"semver": "^3"}, "Tags": ["1.0.0"]}`, `{"Tag":"","None":"none of the 1 tags is what the policy wants: semver ^3"}`, ""},
		"a bad pattern": {`{"Policy": {"semver": "*", "filterTags": {"pattern": "("}}}`, "", "policy.filterTags.pattern is not a regular expression (RE2)"},
		"no JSON":       {`{`, "", "reading which tags to choose from"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Evaluate([]byte(tc.input), nil, func(string) {})
			if string(got) != tc.want || !strings.HasPrefix(message(err), tc.err) || (err == nil) != (tc.err == "") {
				t.Errorf("got %s, %v", got, err)
			}
		})
	}
}
