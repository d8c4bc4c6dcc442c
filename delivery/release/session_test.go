package release

import (
	"errors"
	"testing"
	"time"

	helm "helm.sh/helm/v3/pkg/release"

	"github.com/kubeop/kubeop/delivery/release/decide"
	"github.com/kubeop/kubeop/delivery/release/fence"
)

// TestAnActionThatLostItsReleaseIsNoFailureOfTheInput, whatever error Helm makes of it: another process goes on with the release, and this one
// must not count an attempt.
func TestAnActionThatLostItsReleaseIsNoFailureOfTheInput(t *testing.T) {
	for _, err := range []error{nil, errors.New("upgrade failed: another process took the release over")} {
		s := &session{fence: fence.New(time.Now, nil)}
		s.fence.Shut()
		if got := s.end(err); !errors.Is(got.err, fence.ErrFenced) || !got.environment || got.stored {
			t.Errorf("%v: got %+v", err, got)
		}
	}
}

// TestAnUninstallationKeepsTheTrialThatItRemediates: a process that goes on with the uninstallation of an earlier one, for another input, must
// not hold that input instead.
func TestAnUninstallationKeepsTheTrialThatItRemediates(t *testing.T) {
	for name, tc := range map[string]struct {
		remediates bool
		held, want string
	}{
		"begun now":         {remediates: true, want: "new"},
		"begun earlier":     {remediates: true, held: "old", want: "old"},
		"of a removed app":  {},
		"removed meanwhile": {held: "old", want: "old"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &session{pass: &pass{want: decide.Want{App: "web", Holder: "me", Trial: "new"}}, plan: decide.Decision{Remediates: tc.remediates}}
			rel := &helm.Release{Version: 3, Labels: map[string]string{decide.RevisionLabel: "3", decide.HeldLabel: tc.held}}
			s.claim(rel)
			if got := rel.Labels[decide.HeldLabel]; got != tc.want {
				t.Errorf("held is trial %q, want %q", got, tc.want)
			}
		})
	}
}
