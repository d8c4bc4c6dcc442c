package fetch

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/limit"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
)

func TestVerdict(t *testing.T) {
	cases := map[string]struct {
		err    error
		reason string
		final  bool
	}{
		"busy":              {failure.New(failure.ErrBusy, "x"), v1alpha1.WaitingForTurnReason, false},
		"credentials":       {failure.New(failure.ErrAuthentication, "x"), v1alpha1.AuthenticationFailedReason, true},
		"nothing there":     {fmt.Errorf("fetching: %w", failure.New(failure.ErrNotFound, "x")), v1alpha1.SourceNotFoundReason, true},
		"a bad URL":         {failure.New(failure.ErrInvalid, "x"), v1alpha1.InvalidSourceReason, true},
		"too large":         {limit.TooLarge("it", 1), v1alpha1.InvalidSourceReason, true},
		"too large a chart": {chartTooLarge(1), v1alpha1.TooLargeReason, true},
		"another digest":    {failure.New(failure.ErrDigest, "x"), v1alpha1.DigestMismatchReason, true},
		"a dependency":      {fmt.Errorf("dependency x: %w", failure.New(failure.ErrDigest, "x")), v1alpha1.DigestMismatchReason, true},
		"down":              {transport.RequestError(errors.New("x"), "h"), v1alpha1.FetchFailedReason, false},
		"too slow":          {limit.TooSlow("it takes longer than", 1), v1alpha1.FetchFailedReason, false},
		"a server's fault":  {failure.New(failure.ErrServer, "x"), v1alpha1.FetchFailedReason, false},
		"the time is over":  {context.DeadlineExceeded, v1alpha1.FetchFailedReason, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if reason, final := Verdict(tc.err); reason != tc.reason || final != tc.final {
				t.Errorf("got %s, %v, want %s, %v", reason, final, tc.reason, tc.final)
			}
		})
	}
}

// secrets is an API server that answers with one Secret's data, or an error.
type secrets struct {
	client.Reader
	data map[string][]byte
	err  error
}

func (s secrets) Get(_ context.Context, _ client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	o.(*corev1.Secret).Data = s.data
	return s.err
}

func TestReadAuth(t *testing.T) {
	gone := apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, "git")
	cases := map[string]struct {
		reader client.Reader
		says   string
		final  bool
	}{
		"missing":  {secrets{err: gone}, "secret ns/git of secretRef does not exist: create it", false},
		"refused":  {secrets{err: errors.New("away")}, "reading secret ns/git: away", false},
		"unusable": {secrets{data: map[string][]byte{"username": []byte("u")}}, "no password", true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := ReadAuth(t.Context(), tc.reader, "ns", &v1alpha1.LocalSecretReference{Name: "git"})
			if err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v, want %q", err, tc.says)
			}
			if _, final := Verdict(err); final != tc.final {
				t.Errorf("final is %v", final)
			}
		})
	}
	// Without a reference nobody is asked: there is no reader here.
	if auth, err := ReadAuth(t.Context(), nil, "ns", nil); err != nil || !auth.Anonymous() {
		t.Errorf("got %v, %v", auth, err)
	}
	reader := secrets{data: map[string][]byte{"username": []byte("u"), "password": []byte("p")}}
	if auth, err := ReadAuth(t.Context(), reader, "ns", &v1alpha1.LocalSecretReference{Name: "git"}); err != nil || auth.Password != "p" {
		t.Errorf("got %v, %v", auth, err)
	}
}
