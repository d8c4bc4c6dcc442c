package release

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/release/charts"
	"github.com/kubeop/kubeop/delivery/release/decide"
	"github.com/kubeop/kubeop/delivery/release/fault"
)

func input(change ...func(*Request)) *Request {
	r := &Request{Name: "web", Namespace: "team", Input: Input{Chart: charts.Chart{Digest: "sha256:1"}, Values: map[string]any{"a": 1, "b": map[string]any{"c": "x"}}}}
	for _, c := range change {
		c(r)
	}
	return r
}

func TestDigestChangesWithTheInput(t *testing.T) {
	base, baseTrial, err := input().digests()
	if err != nil {
		t.Fatal(err)
	}
	if len(validation.IsValidLabelValue(base)) > 0 {
		t.Errorf("%s is no label value", base)
	}
	tests := map[string]struct {
		change func(*Request)
		same   bool
		// trial: the same input, released otherwise.
		trial bool
	}{
		"same":              {func(*Request) {}, true, false},
		"other order":       {func(r *Request) { r.Input.Values = map[string]any{"b": map[string]any{"c": "x"}, "a": 1} }, true, false},
		"other number type": {func(r *Request) { r.Input.Values["a"] = float64(1) }, true, false},
		"other user":        {func(r *Request) { r.User = "someone" }, true, false},
		"chart":             {func(r *Request) { r.Input.Chart.Digest = "sha256:2" }, false, false},
		"name":              {func(r *Request) { r.Name = "api" }, false, false},
		"value":             {func(r *Request) { r.Input.Values["a"] = 2 }, false, false},
		"nested value":      {func(r *Request) { r.Input.Values["b"] = map[string]any{"c": "y"} }, false, false},
		"no values":         {func(r *Request) { r.Input.Values = nil }, false, false},
		"values file":       {func(r *Request) { r.Input.ValuesFiles = []string{"prod.yaml"} }, false, false},
		"common metadata":   {func(r *Request) { r.Input.CommonMetadata = &v1alpha1.CommonMetadata{} }, false, false},
		"renderer":          {func(r *Request) { r.Input.PostRenderers = make([]v1alpha1.PostRenderer, 1) }, false, false},
		"admission":         {func(r *Request) { r.Input.Admission = "other" }, false, false},
		"allowance":         {func(r *Request) { r.Policy.Allowance = "more" }, true, true},
		"install":           {func(r *Request) { r.Actions.Install.DisableHooks = true }, true, true},
		"tests":             {func(r *Request) { r.Actions.Test.Enable = true }, true, true},
		"uninstall":         {func(r *Request) { r.Actions.Uninstall.DisableHooks = true }, true, false},
		"remediation":       {func(r *Request) { r.Actions.Remediation.Strategy = v1alpha1.RemediationNone }, true, false},
		"drift":             {func(r *Request) { r.Ignore = make([]v1alpha1.IgnoreRule, 1) }, true, false},
		"wait":              {func(r *Request) { r.Actions.Wait = true }, true, true},
		"force":             {func(r *Request) { r.Actions.Upgrade.Force = true }, true, true},
		"null is a value":   {func(r *Request) { r.Input.Values["z"] = nil }, false, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, trial, err := input(test.change).digests()
			if err != nil {
				t.Fatal(err)
			}
			if (trial == baseTrial) != (test.same && !test.trial) {
				t.Errorf("trial %s, base %s", trial, baseTrial)
			}
			if (got == base) != test.same {
				t.Errorf("digest %s, base %s, want the same: %v", got, base, test.same)
			}
		})
	}
}

// TestDigestsStayTheSame over versions of kubeop: otherwise an update of kubeop upgrades all releases. A change that is meant raises renderVersion.
func TestDigestsStayTheSame(t *testing.T) {
	digest, trial, err := input().digests()
	if err != nil || digest != "195c8b3f4304fcdb31f089c78d15888014e74326" || trial != "2e3a788cd55d7d7f68f06e4bab666e73de9f6189" {
		t.Errorf("got %s, %s, %v", digest, trial, err)
	}
}

func TestNoValuesAndEmptyValuesHaveTheSameDigest(t *testing.T) {
	none, _, err := input(func(r *Request) { r.Input.Values = nil }).digests()
	if err != nil {
		t.Fatal(err)
	}
	empty, _, err := input(func(r *Request) { r.Input.Values = map[string]any{} }).digests()
	if err != nil || none != empty {
		t.Errorf("nil is %s, empty is %s, %v", none, empty, err)
	}
}

func TestADigestNeedsAChartDigestAndValuesThatEncode(t *testing.T) {
	if _, _, err := input(func(r *Request) { r.Input.Chart.Digest = "" }).digests(); err == nil {
		t.Error("a chart without digest has one")
	}
	_, _, err := input(func(r *Request) { r.Input.Values["a"] = func() {} }).digests()
	if !errors.Is(err, fault.ErrRender) {
		t.Errorf("got %v, want ErrRender", err)
	}
}

func TestALabelValueIsValidAndStable(t *testing.T) {
	for _, name := range []string{"kubeop-7f9c", strings.Repeat("x", 200), "a b", "ü", ""} {
		got := decide.LabelValue(name)
		if len(validation.IsValidLabelValue(got)) > 0 {
			t.Errorf("%q became %q, which is no label value", name, got)
		}
		if got != decide.LabelValue(name) {
			t.Errorf("%q becomes something else each time", name)
		}
	}
	if decide.LabelValue("kubeop-7f9c") != "kubeop-7f9c" {
		t.Error("a good name was changed")
	}
}
