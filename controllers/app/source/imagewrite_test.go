package source

import (
	"cmp"
	"fmt"
	"testing"
	"time"

	diff "github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/controllers/writeback/update"
)

// asked is a writer of updates that records what it is asked.
type asked struct {
	references []string
	last       update.Update
	dropped    int
	written    *update.Written
	message    string
}

func (a *asked) Ask(u update.Update) *update.Written {
	a.last = u
	a.references = append(a.references, fmt.Sprint(u.Changes[0].Value))
	return a.written
}

func (a *asked) Note(_, condition string) step.Note {
	return step.Note{Condition: condition, Message: a.message}
}

func (a *asked) Last(string) (update.Update, *update.Written) { return a.last, a.written }

func (a *asked) Drop(string) { a.dropped++ }

// writes sets policy.write and the reference of the file.
func (b *fixture) writes(reference string) *asked {
	a := &asked{}
	b.Images, b.app.Spec.Image.Reference, b.app.Spec.Image.Policy.Write = &ImageWriter{Writes: a}, reference, v1alpha1.WriteCommit
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
	if d := diff.Diff([]string{p.found.Image.Reference}, a.references); d != "" || a.dropped != 0 {
		t.Errorf("asked (-want +got):\n%s, dropped %d times", d, a.dropped)
	}
	if message, _ := b.note(p, v1alpha1.ImageWriteFailedCondition); message != "no" {
		t.Errorf("the condition says %q", message)
	}
	// What was written is in the status, and stays with the next choice.
	a.written = &update.Written{Commit: "c0ffee"}
	b.chooses("1.0.0", 0)
	if got := b.app.Status.Image.Written; got == nil || *got != (v1alpha1.ImageWritten{Reference: p.found.Image.Reference, Commit: "c0ffee"}) {
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
	if _, there := b.note(p, v1alpha1.ImageWriteFailedCondition); !there || a.dropped != 1 || len(a.references) != 1 {
		t.Errorf("without write: the condition is in the notes: %t, dropped %d times, asked for %v", there, a.dropped, a.references)
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

// TestAnImageIsWrittenOnce: what a person writes afterwards stays, and another way to write counts as new.
func TestAnImageIsWrittenOnce(t *testing.T) {
	const old, newer = "example.com/web:1.0.0", "example.com/web:1.1.0@sha256:111122223333"
	a := &asked{}
	woken := ""
	w := &ImageWriter{Writes: a, Wake: func(key types.NamespacedName) { woken = key.String() }}
	app := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-acme-shop", Name: "web", UID: "u"}}
	app.Spec.Image = &v1alpha1.ImageSource{Reference: old, Policy: &v1alpha1.ImagePolicy{Write: v1alpha1.WriteCommit}}
	chosen := &v1alpha1.ImageStatus{Reference: newer, Tag: "1.1.0"}
	for name, tc := range map[string]struct {
		reference string
		written   *v1alpha1.ImageWritten
		how       v1alpha1.WriteMode
		asks      bool
	}{
		"new":                           {reference: old, asks: true},
		"the file has what was written": {reference: newer, written: &v1alpha1.ImageWritten{Reference: newer, Commit: "c0ffee"}},
		"written, and taken back":       {reference: old, written: &v1alpha1.ImageWritten{Reference: newer}},
		"an older one was written":      {reference: old, written: &v1alpha1.ImageWritten{Reference: "example.com/web:1.0.5"}, asks: true},
		"a pull request is open":        {reference: old, written: &v1alpha1.ImageWritten{Reference: newer, PullRequest: "7"}, how: v1alpha1.WritePullRequest},
		"a commit after a pull request": {reference: old, written: &v1alpha1.ImageWritten{Reference: newer, PullRequest: "7"}, asks: true},
		"a pull request after a commit": {reference: old, written: &v1alpha1.ImageWritten{Reference: newer}, how: v1alpha1.WritePullRequest, asks: true},
	} {
		*a = asked{}
		chosen.Written, app.Spec.Image.Reference, app.Spec.Image.Policy.Write = tc.written, tc.reference, cmp.Or(tc.how, v1alpha1.WriteCommit)
		got := w.Ask(app, chosen)
		if asks := len(a.references) == 1; asks != tc.asks || tc.asks == (a.dropped == 1) || !tc.asks && got != tc.written {
			t.Errorf("%s: asked for %v, dropped %d times, written is %+v", name, a.references, a.dropped, got)
		}
	}
	// The file has it, and the status does not know that it was written.
	app.Annotations = map[string]string{v1alpha1.RevisionAnnotation: "main@sha1:beef"}
	for name, tc := range map[string]struct {
		version string
		written *update.Written
		want    v1alpha1.ImageWritten
	}{
		"just now":              {old + " " + newer, &update.Written{Commit: "c0ffee", PullRequest: "7"}, v1alpha1.ImageWritten{Reference: newer, Commit: "c0ffee", PullRequest: "7"}},
		"by somebody else":      {"", nil, v1alpha1.ImageWritten{Reference: newer, Commit: "beef"}},
		"after another version": {"a " + old, &update.Written{Commit: "c0ffee"}, v1alpha1.ImageWritten{Reference: newer, Commit: "beef"}},
	} {
		for _, before := range []*v1alpha1.ImageWritten{nil, {Reference: old, Commit: "0"}} {
			*a = asked{last: update.Update{Version: tc.version}, written: tc.written}
			app.Spec.Image.Reference, chosen.Written = newer, before
			if got := w.Ask(app, chosen); got == nil || *got != tc.want || len(a.references) != 0 || a.dropped != 1 {
				t.Errorf("%s, before %+v: written is %+v, want %+v; asked for %v, dropped %d times", name, before, got, tc.want, a.references, a.dropped)
			}
		}
	}
	*a = asked{}
	app.Spec.Image.Reference, app.Spec.Image.Policy.Write = old, v1alpha1.WritePullRequest
	chosen.Written, a.written = nil, &update.Written{Commit: "c0ffee", PullRequest: "7"}
	if got := w.Ask(app, chosen); got == nil || *got != (v1alpha1.ImageWritten{Reference: newer, Commit: "c0ffee", PullRequest: "7"}) {
		t.Errorf("written is %+v", got)
	}
	u := a.last
	u.Done()
	if u.App != app || u.Mode != v1alpha1.WritePullRequest || u.What != "1.1.0" || u.Version != old+" "+newer {
		t.Errorf("asked for %+v", u)
	}
	if u.Key != "image u" || u.Title != "Update shop/web to 1.1.0" || u.Body != "The policy of the app chose "+newer+". Before it was "+old+"." ||
		u.ProposedOn() != "kubeop/shop-web-1-1-0-11112222" || fmt.Sprint(u.Changes) != "[{spec.image.reference "+old+" "+newer+"}]" || woken != "kubeop-acme-shop/web" {
		t.Errorf("asked for %+v on %s, woke %s", u, u.ProposedOn(), woken)
	}
}
