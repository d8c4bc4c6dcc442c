package source

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/few"
)

// maxOutdated is how many files the condition OutdatedKey names.
const maxOutdated = 10

// Encryption says for which key the files of an App are encrypted. The zero value knows nothing.
type Encryption struct {
	known     bool
	recipient string
	outdated  []string
}

// Encrypted returns what a build found out: the names of the files that are not encrypted for the recipient. One that failed has not read all files.
func Encrypted(recipient string, outdated []string, err error) Encryption {
	return Encryption{known: err == nil, recipient: recipient, outdated: outdated}
}

// note is the condition OutdatedKey. While nothing is known, it stays as it is.
func (e Encryption) note(app *v1alpha1.App) step.Note {
	note := step.Note{Condition: v1alpha1.OutdatedKeyCondition}
	switch {
	case !e.known && decrypts(&app.Spec):
		return step.Stays(note.Condition)
	case len(e.outdated) == 0:
		return note
	}
	var names []string
	for _, name := range e.outdated {
		names = append(names, few.Quote(name)) // The process that built them read them from tenants.
	}
	note.Status, note.Reason, note.Event = metav1.ConditionTrue, v1alpha1.EarlierKeyReason, corev1.EventTypeWarning
	note.Message = fmt.Sprintf("encrypted for an earlier key of the tenant, and not for the present one, %s: %s: encrypt them for that one, too, in Git; until then they are decrypted as before",
		e.recipient, strings.Join(few.Of(names, maxOutdated), ", "))
	return note
}

// decrypts reports whether an App has encrypted files.
func decrypts(spec *v1alpha1.AppSpec) bool {
	return spec.Git != nil && spec.Git.Decryption != nil || spec.Raw != nil && spec.Raw.Decryption != nil
}
