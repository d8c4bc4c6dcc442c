package source

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
)

// asked is an ImageWriter that records what it is asked.
type asked struct {
	references []string
	forgotten  int
	written    *v1alpha1.ImageWritten
	message    string
}

func (a *asked) Ask(_ *v1alpha1.App, chosen *v1alpha1.ImageStatus) *v1alpha1.ImageWritten {
	a.references = append(a.references, chosen.Reference)
	return a.written
}

func (a *asked) Note(*v1alpha1.App) step.Note {
	return step.Note{Condition: v1alpha1.ImageWriteFailedCondition, Message: a.message}
}

func (a *asked) Forget(*v1alpha1.App) { a.forgotten++ }

// writes sets policy.write and the reference of the file.
func (b *fixture) writes(reference string) *asked {
	a := &asked{}
	b.Images, b.app.Spec.Image.Reference, b.app.Spec.Image.Policy.Write = a, reference, v1alpha1.WriteCommit
	return a
}

// asksFirst takes the step that asks the registry and does not wait for it, and waits for the answer.
func (b *fixture) asksFirst() {
	b.t.Helper()
	p, _, err := b.look()
	if _, there := b.note(p, v1alpha1.ImageKeptCondition); err != nil || there || p.found.Image != nil || p.found.Reference != b.app.Spec.Image.Reference || p.Again() != registryPause {
		b.t.Errorf("before the answer: %v, ImageKept is in the notes: %t, %+v", err, there, p.found)
	}
	<-b.woken
}

// note returns the message of a condition in the notes.
func (b *fixture) note(p *pass, condition string) (message string, there bool) {
	for _, n := range p.found.Notes(b.app) {
		if n.Condition == condition {
			return n.Message, true
		}
	}
	return "", false
}

func TestTheFileSaysWhatRunsWhileThePolicyWritesIt(t *testing.T) {
	b := newFixture(t)
	name := b.app.Spec.Image.Reference
	a := b.writes(name + ":0.9.0")
	a.message = "no"
	b.asksFirst()
	p := b.chooses("1.0.0", 0, "Normal web: 1.0.0")
	if p.found.Reference != name+":0.9.0" {
		t.Errorf("delivered is %s", p.found.Reference)
	}
	if diff := cmp.Diff([]string{p.found.Image.Reference}, a.references); diff != "" || a.forgotten != 0 {
		t.Errorf("asked (-want +got):\n%s, forgotten %d times", diff, a.forgotten)
	}
	if message, _ := b.note(p, v1alpha1.ImageWriteFailedCondition); message != "no" {
		t.Errorf("the condition says %q", message)
	}
	// What was written is in the status, and stays with the next choice.
	a.written = &v1alpha1.ImageWritten{Reference: p.found.Image.Reference, Commit: "c0ffee"}
	b.chooses("1.0.0", 0)
	if got := b.app.Status.Image.Written; got != a.written {
		t.Errorf("written is %+v", got)
	}
	a.written = nil
	b.server(func() { b.tags = `"1.1.0"` })
	b.pass(5 * time.Minute)
	if p, _, err := b.look(); err != nil || p.found.Reference != name+":0.9.0" {
		t.Errorf("before the answer: %v, delivered is %s", err, p.found.Reference)
	}
	<-b.woken
	b.chooses("1.1.0", 0, "Normal web: 1.0.0 → 1.1.0")
	if got := b.app.Status.Image.Written; got == nil || got.Commit != "c0ffee" {
		t.Errorf("written is %+v", got)
	}

	// The registry may have no tag, or not answer, also the first time.
	for problem, change := range map[string]func(){"no tag": func() { b.tags = "" }, "no answer": func() { b.down = true }} {
		b.restart()
		a = b.writes(name + ":0.9.0@sha256:aa")
		b.app.Status.Image = nil
		b.server(change)
		b.asksFirst()
		p, _, err := b.look()
		message, _ := b.note(p, v1alpha1.ImageKeptCondition)
		if err != nil || p.found.Reference != name+":0.9.0@sha256:aa" || message == "" || p.Again() != registryPause || len(a.references) > 0 {
			t.Errorf("%s: %v, delivered is %s, the condition says %q, looks again after %s, asked for %v", problem, err, p.found.Reference, message, p.Again(), a.references)
		}
	}

	// Without write, the condition ends.
	b.app.Spec.Image.Policy = nil
	p, _, err := b.look()
	if _, there := b.note(p, v1alpha1.ImageWriteFailedCondition); err != nil || !there || p.found.Reference != "" {
		t.Errorf("%v, the condition is in the notes: %t, delivered is %s", err, there, p.found.Reference)
	}
}

func TestAFileWithoutATagRunsTheChoice(t *testing.T) {
	b := newFixture(t)
	a := b.writes(b.app.Spec.Image.Reference)
	p := b.chooses("1.0.0", 2, "Normal web: 1.0.0")
	if p.found.Reference != p.found.Image.Reference || len(a.references) != 1 {
		t.Errorf("delivered is %s, asked for %v", p.found.Reference, a.references)
	}
	b.app.Spec.Image.Policy.Write = ""
	p = b.chooses("1.0.0", 0)
	if _, there := b.note(p, v1alpha1.ImageWriteFailedCondition); !there || a.forgotten != 1 || len(a.references) != 1 {
		t.Errorf("without write: the condition is in the notes: %t, forgotten %d times, asked for %v", there, a.forgotten, a.references)
	}
}

func TestNothingIsWrittenDuringAFreeze(t *testing.T) {
	b := newFixture(t)
	a := b.writes(b.app.Spec.Image.Reference + ":1.0.0")
	b.asksFirst()
	b.chooses("1.0.0", 0, "Normal web: 1.0.0")
	b.app.Status.LastAttemptedRevision = "main@sha1:c0ffee"
	b.freeze = []v1alpha1.FreezeWindow{{Name: "audit", Start: "0 0 * * *", Duration: metav1.Duration{Duration: 24 * time.Hour}}}
	p, _, err := b.look()
	if err != nil || p.pin == "" || len(a.references) != 1 {
		t.Errorf("%v, frozen at %q, asked for %v", err, p.pin, a.references)
	}
}
