package source

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// TestFilesForAnEarlierKeyAreACondition, which stays while nothing new is known, and goes when all files are for the present key, or when the App
// decrypts nothing any more.
func TestFilesForAnEarlierKeyAreACondition(t *testing.T) {
	var eleven []string
	for n := range maxOutdated + 1 {
		eleven = append(eleven, fmt.Sprintf("%02d.yaml", n))
	}
	git := v1alpha1.AppSpec{Git: &v1alpha1.GitSource{Build: v1alpha1.Build{Decryption: &v1alpha1.Decryption{}}}}
	raw := v1alpha1.AppSpec{Raw: &v1alpha1.RawSource{Decryption: &v1alpha1.Decryption{}}}
	for name, c := range map[string]struct {
		spec    v1alpha1.AppSpec
		is      Encryption
		message string // "stays" if the condition stays.
	}{
		"nothing was built yet":        {git, Encryption{}, "stays"},
		"no manifests were built yet":  {raw, Encryption{}, "stays"},
		"a build that failed":          {git, Encrypted("age1new", nil, errors.New("no file")), "stays"},
		"it decrypts nothing any more": {v1alpha1.AppSpec{Git: &v1alpha1.GitSource{}}, Encryption{}, ""},
		"it is of another source":      {v1alpha1.AppSpec{}, Encryption{}, ""},
		"all are for the present key":  {git, Encrypted("age1new", nil, nil), ""},
		"some are not":                 {git, Encrypted("age1new", []string{"a.yaml", "b.yaml"}, nil), "the present one, age1new: a.yaml, b.yaml: encrypt them"},
		"as many as are named":         {git, Encrypted("age1new", eleven[:maxOutdated], nil), "08.yaml, 09.yaml: encrypt them"},
		"more than are named":          {git, Encrypted("age1new", eleven, nil), "09.yaml, and 1 more: encrypt them"},
		"a name of two lines":          {git, Encrypted("age1new", []string{"a\nb.yaml"}, nil), "age1new: a b.yaml: encrypt them"},
	} {
		app := &v1alpha1.App{Spec: c.spec}
		note := c.is.note(app)
		if note.Condition != v1alpha1.OutdatedKeyCondition {
			t.Errorf("%s: it is about %s", name, note.Condition)
		}
		if c.message == "" || c.message == "stays" {
			if note.Status != "" || note.Stays != (c.message == "stays") {
				t.Errorf("%s: got %+v", name, note)
			}
			continue
		}
		if note.Status != metav1.ConditionTrue || note.Reason != v1alpha1.EarlierKeyReason || !strings.Contains(note.Message, c.message) {
			t.Errorf("%s: got %+v, want %q", name, note, c.message)
		}
		if note.Event != corev1.EventTypeWarning {
			t.Errorf("%s: the event is %q", name, note.Event)
		}
	}
}
