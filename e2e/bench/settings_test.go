package main

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestSettingsAreReadFromTheArguments(t *testing.T) {
	got, err := parseSettings([]string{"-sizes", "2000,500", "-values", "6KiB", "-chart", "folder", "-phases", "idle", "-budget=false", "-quiet", "1s"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	want := settings{sizes: []int{500, 2000}, driver: "kubeop", kind: "helm", chart: "folder", padding: 6 << 10, phases: []string{idle, install}, still: time.Second}
	got.flux = fluxSettings{}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(settings{}, fluxSettings{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWrongSettingsAreRefused(t *testing.T) {
	flux := "-driver flux -metrics http://127.0.0.1:1/metrics "
	for args, want := range map[string]string{
		"-n 0":                "1 to 9999",
		"-sizes 5,x":          `"x" is no number`,
		"-sizes 5,10 -keep":   "-keep is for one size",
		"-values heavy":       "write it as 6KiB",
		"-values 1MiB":        "up to 256KiB",
		"-chart http":         "oci or folder",
		"-driver argo":        "kubeop or flux",
		"-phases idle,sleep":  `"sleep" is none`,
		"-driver flux":        "needs -chart-url",
		flux + "-flux-kind x": "HelmRelease or Kustomization",
		flux + "-flux-kind Kustomization -git-url x": "-git-clone",
		"-driver flux -chart-url oci://x":            "needs -metrics",
		"everything":                                 "There are only flags",
		"-unknown":                                   "not defined",
	} {
		if _, err := parseSettings(strings.Fields(args), io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", args, err, want)
		}
	}
	if _, err := parseSettings(strings.Fields(flux+"-chart-url oci://x"), io.Discard); err != nil {
		t.Errorf("what Flux needs is there: %v", err)
	}
}
