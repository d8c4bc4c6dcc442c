package transport

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
)

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

func TestReadAuthExplainsUnusableSecrets(t *testing.T) {
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
			if final := errors.Is(err, failure.ErrInvalid); final != tc.final {
				t.Errorf("final is %v, want %v", final, tc.final)
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
