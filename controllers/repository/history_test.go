package repository

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/fetch/git"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
	"github.com/kubeop/kubeop/internal/testenv/steptest"
)

// pushOn makes commits one after the other from what the server has, the last with that content; it returns its revision.
func (b *fixture) pushOn(content string, commits int) string {
	b.t.Helper()
	work := b.t.TempDir()
	b.git("clone", "-q", b.bare, work)
	for i := range commits {
		said := content
		if i < commits-1 {
			said = fmt.Sprint(content, " ", i)
		}
		if err := os.WriteFile(filepath.Join(work, appFolder, "app.yaml"), []byte(said), 0o600); err != nil {
			b.t.Fatal(err)
		}
		b.git("-C", work, "add", "-A")
		b.git("-C", work, "-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-q", "-m", said)
	}
	b.git("-C", work, "push", "-q", "origin", "main")
	return "main@sha1:" + b.git("-C", work, "rev-parse", "HEAD")
}

// pushBack sets the server's branch to a revision.
func (b *fixture) pushBack(revision string) {
	b.t.Helper()
	b.git("-C", b.bare, "update-ref", "refs/heads/main", v1alpha1.CommitOf(revision))
}

// pass takes the steps of a Reconcile that decide which commit is in force, with the remote asked anew, and records them. It
// returns the content of the app in that commit, "" when there is none, and how the steps ended.
func (b *fixture) pass() (content string, err error) {
	b.t.Helper()
	b.clock.Step(time.Hour)
	live := &v1alpha1.Repository{}
	if err := b.Client.Get(b.t.Context(), client.ObjectKeyFromObject(b.repository), live); err != nil {
		b.t.Fatal(err)
	}
	b.repository = live.DeepCopy()
	s := newScope(b.repository)
	fetched := b.fetch(b.t.Context(), s)
	for tries := 0; fetched != nil && fetched.Error() == step.Soon(0).Error() && tries < 300; tries++ {
		select {
		case <-b.woken:
		case <-time.After(100 * time.Millisecond):
		}
		s = newScope(b.repository)
		fetched = b.fetch(b.t.Context(), s)
	}
	s.Record()
	live.Status = b.repository.Status
	if err := b.Client.Get(b.t.Context(), client.ObjectKeyFromObject(b.repository), b.repository); err != nil {
		b.t.Fatal(err)
	}
	b.repository.Status = live.Status
	b.update(b.repository)
	if s.commit.Root != nil {
		found, err := s.commit.Root.ReadFile(appFolder + "/app.yaml")
		if err != nil {
			b.t.Fatal(err)
		}
		content = string(found)
	}
	s.progress = b.progress
	return content, errors.Join(fetched, b.reportHeld(b.t.Context(), s))
}

// want takes a pass and checks what is in force, and that the error says all of says, or that there is none.
func (b *fixture) want(content string, says ...string) {
	b.t.Helper()
	got, err := b.pass()
	if got != content || (err == nil) != (len(says) == 0) {
		b.t.Errorf("in force is %q, want %q: %v", got, content, err)
	}
	for _, words := range says {
		if !strings.Contains(fmt.Sprint(err), words) {
			b.t.Errorf("%v does not say %q", err, words)
		}
	}
	want := "stopped " // A commit that is held waits for a person, and a missing Secret is looked for again.
	if err != nil && strings.Contains(err.Error(), "does not exist: create it") {
		want = "failed "
	}
	if end := steptest.Outcome(b.t, err); err != nil && !strings.HasPrefix(end, want) {
		b.t.Errorf("the outcome is %q, want it to begin with %q", end, want)
	}
}

func (b *fixture) annotate(value string) {
	b.t.Helper()
	before := b.repository.DeepCopy()
	b.repository.Annotations = map[string]string{v1alpha1.ConfirmHistoryAnnotation: value}
	if err := b.Client.Patch(b.t.Context(), b.repository, client.MergeFrom(before)); err != nil {
		b.t.Fatal(err)
	}
}

// lose has the operator begin with an empty disk.
func (b *fixture) lose() {
	b.Git = git.NewStore(b.t.TempDir(), &transport.Network{Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	b.restart()
}

func TestACommitThatDescendsIsTaken(t *testing.T) {
	b := newFixture(t)
	b.want("1")
	revision := b.pushOn("2", 1)
	b.asked = 0
	b.want("2")
	if b.asked != 2 {
		t.Errorf("a push of one commit asked the server %d times, want for the refs and the commit", b.asked)
	}
	if got := b.repository.Status; got.LastAttemptedRevision != revision || got.Source != b.repository.Spec.URL {
		t.Errorf("the status says %s of %q", got.LastAttemptedRevision, got.Source)
	}
	b.want("2")
	b.pulls.mu.Lock()
	fetched, hash := b.pulls.fetched, v1alpha1.CommitOf(revision)
	b.pulls.mu.Unlock()
	if len(fetched) != 3 || fetched[1] != hash || fetched[2] != hash {
		t.Errorf("pull requests are listed after the fetches of %v, want after each", fetched)
	}
	b.pushOn("3", 20)
	b.want("3")
	b.restart()
	b.want("3")
}

func TestARewrittenHistoryIsHeld(t *testing.T) {
	b := newFixture(t)
	b.progress = newProgress() // Only the files of a commit that waits for a freeze are reviewed.
	first := b.repository.Status.LastAttemptedRevision
	b.want("1")
	last := b.pushOn("2", 3)
	b.want("2")
	for name, push := range map[string]func() string{
		"back":    func() string { b.pushBack(first); return first },
		"foreign": func() string { revision, _ := b.push("foreign"); return revision },
	} {
		revision := push()
		says := []string{revision + " does not descend from " + last, "nothing of it is applied",
			"kubectl annotate repository acme --overwrite paas.kubeop.io/confirm-history=" + v1alpha1.CommitOf(revision)}
		b.want("2", says...)
		if got := b.repository.Status.LastAttemptedRevision; got != last {
			t.Errorf("%s: the status says %s, want %s", name, got, last)
		}
		// Nor is it forgotten with the process, nor is the remote asked to compare at each look.
		b.restart()
		b.want("2", says...)
		b.asked = 0
		b.want("2", says...)
		if b.asked > 1 {
			t.Errorf("%s: another look asked the server %d times", name, b.asked)
		}
	}
	b.pushBack(last)
	b.want("2")
	b.pushOn("3", 2)
	b.want("3")
}

// TestAConfirmationLetsOneCommitInOnce and neither another one nor the same one again.
func TestAConfirmationLetsOneCommitInOnce(t *testing.T) {
	b := newFixture(t)
	b.want("1")
	b.pushOn("2", 3)
	b.want("2")
	foreign, _ := b.push("foreign")
	b.annotate(v1alpha1.CommitOf(foreign))
	other, _ := b.push("other")
	b.want("2", other+" does not descend")
	b.pushBack(foreign)
	b.want("foreign")
	if said := b.repository.Annotations[v1alpha1.ConfirmHistoryAnnotation]; said != "" {
		t.Errorf("the confirmation is still there: %s, want none", said)
	}
	b.pushOn("on", 2)
	b.want("on")
	b.pushBack(foreign)
	b.want("on", foreign+" does not descend")
	b.annotate(foreign)
	b.want("foreign")
}

// TestAConfirmationOfTheAcceptedCommitIsRemoved as when the process ended before the commit was recorded as accepted.
func TestAConfirmationOfTheAcceptedCommitIsRemoved(t *testing.T) {
	b := newFixture(t)
	b.annotate(v1alpha1.CommitOf(b.repository.Status.LastAttemptedRevision))
	b.want("1")
	if said := b.repository.Annotations[v1alpha1.ConfirmHistoryAnnotation]; said != "" {
		t.Errorf("the confirmation is still there: %s, want none", said)
	}
}

func TestAnotherSourceMayHaveAnotherHistory(t *testing.T) {
	for name, change := range map[string]func(*fixture, *v1alpha1.Repository){
		"any history": func(_ *fixture, o *v1alpha1.Repository) { o.Spec.History = v1alpha1.HistoryAny },
		"another ref": func(_ *fixture, o *v1alpha1.Repository) { o.Spec.Ref = &sourcev1.GitRepositoryRef{Branch: "main"} },
		"another URL": func(_ *fixture, o *v1alpha1.Repository) {
			o.Spec.URL = strings.TrimSuffix(o.Spec.URL, ".git") + ".git/"
		},
		"a commit": func(b *fixture, o *v1alpha1.Repository) {
			o.Spec.Ref = &sourcev1.GitRepositoryRef{Commit: b.git("-C", b.bare, "rev-parse", "main")}
		},
		"the first commit": func(_ *fixture, o *v1alpha1.Repository) { o.Status = v1alpha1.RepositoryStatus{} },
	} {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t)
			b.want("1")
			b.push("foreign")
			b.repository.Generation++
			change(b, b.repository)
			b.update(b.repository)
			b.want("foreign")
		})
	}
}

// TestAHigherVersionNeedNotDescendFromTheLastOne, but a moved tag and a lower version have to.
func TestAHigherVersionNeedNotDescendFromTheLastOne(t *testing.T) {
	b := newFixture(t)
	tag := func(name, revision string) { b.git("-C", b.bare, "tag", "-f", name, v1alpha1.CommitOf(revision)) }
	b.want("1")
	first, _ := b.push("one")
	tag("v1.0.0", first)
	b.repository.Generation++
	b.repository.Spec.Ref = &sourcev1.GitRepositoryRef{SemVer: ">=1.0.0"}
	b.update(b.repository)
	b.want("one")
	second, _ := b.push("two")
	tag("v1.1.0", second)
	b.want("two")
	moved, _ := b.push("moved")
	tag("v1.1.0", moved)
	b.want("two", "v1.1.0@sha1:"+v1alpha1.CommitOf(moved)+" does not descend from v1.1.0@sha1:"+v1alpha1.CommitOf(second))
	b.git("-C", b.bare, "tag", "-d", "v1.1.0")
	b.want("two", "v1.0.0@sha1:"+v1alpha1.CommitOf(first)+" does not descend")
}

// TestACommitThatIsNotComparedYetIsFetchedAgain, and only a range of versions lets one in that does not descend.
func TestACommitThatIsNotComparedYetIsFetchedAgain(t *testing.T) {
	for name, c := range map[string]struct {
		ref      *sourcev1.GitRepositoryRef
		compared string
		want     string
	}{
		"a range":                    {&sourcev1.GitRepositoryRef{SemVer: ">1"}, "1a", "done"},
		"a branch":                   {&sourcev1.GitRepositoryRef{Branch: "main"}, "1a", "stopped HistoryRewritten: v1.1.0@sha1:2b does not descend from v1.0.0@sha1:1a"},
		"compared with another one":  {&sourcev1.GitRepositoryRef{SemVer: ">1"}, "0f", "soon, after 1s"},
		"a branch that was not read": {&sourcev1.GitRepositoryRef{Branch: "main"}, "", "soon, after 1s"},
	} {
		s := newCluster(t).scope(nil)
		s.repository.Spec.Ref, s.repository.Status.LastAttemptedRevision = c.ref, "v1.0.0@sha1:1a"
		s.commit.Revision, s.commit.Hash, s.commit.Ancestry.Of = "v1.1.0@sha1:2b", "2b", c.compared
		objection, err := newCluster(t).objection(s)
		if got := steptest.Outcome(t, errors.Join(objection, err)); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}

// TestALastCommitThatIsGone: what runs is left alone, and nothing else is synced in its place.
func TestALastCommitThatIsGone(t *testing.T) {
	b := newFixture(t)
	b.want("1")
	last := b.repository.Status.LastAttemptedRevision
	foreign, _ := b.push("foreign")
	b.git("-C", b.bare, "gc", "-q", "--prune=now")
	b.lose()
	b.want("", foreign+" does not descend from "+last)
	if got := b.repository.Status.LastAttemptedRevision; got != last {
		t.Errorf("the status says %s, want %s", got, last)
	}
	b.annotate(v1alpha1.CommitOf(foreign))
	b.want("foreign")
}

// signedBy makes a commit of what the server has, signed, and returns its revision.
func (b *fixture) signedBy(who *openpgp.Entity, content string) string {
	b.t.Helper()
	plain := b.git("-C", b.bare, "cat-file", "commit", v1alpha1.CommitOf(b.pushOn(content, 1))) + "\n"
	var signature bytes.Buffer
	if err := openpgp.ArmoredDetachSign(&signature, who, strings.NewReader(plain), nil); err != nil {
		b.t.Fatal(err)
	}
	head, message, _ := strings.Cut(plain, "\n\n")
	add := exec.Command("git", "-C", b.bare, "hash-object", "-t", "commit", "-w", "--stdin")
	add.Stdin = strings.NewReader(head + "\ngpgsig " + strings.ReplaceAll(signature.String(), "\n", "\n ") + "\n\n" + message)
	hash, err := add.Output()
	if err != nil {
		b.t.Fatal(err)
	}
	revision := "main@sha1:" + strings.TrimSpace(string(hash))
	b.pushBack(revision)
	return revision
}

// TestACommitThatIsNotSignedIsHeld as a rewritten history is, and no confirmation lets it in.
func TestACommitThatIsNotSignedIsHeld(t *testing.T) {
	b := newFixture(t)
	who, err := openpgp.NewEntity("dev", "", "dev@example.com", nil)
	if err != nil {
		t.Fatal(err)
	}
	var public bytes.Buffer
	out, err := armor.Encode(&public, openpgp.PublicKeyType, nil)
	if err := errors.Join(err, who.Serialize(out), out.Close()); err != nil {
		t.Fatal(err)
	}
	b.clock.SetTime(time.Now())
	b.Steps = &step.Runner{Client: b.Client, Clock: clock.RealClock{}}
	b.repository.Spec.Verify = &v1alpha1.GitVerification{SecretRef: v1alpha1.LocalSecretReference{Name: "keys"}}
	b.repository.Status.LastAttemptedRevision = ""
	b.update(b.repository)
	b.want("", "secret kubeop-system/keys of verify.secretRef does not exist: create it")
	keys := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-system", Name: "keys"}, Data: map[string][]byte{"dev.asc": public.Bytes()}}
	if err := b.Client.Create(t.Context(), keys); err != nil {
		t.Fatal(err)
	}
	b.want("", "is held, nothing of it is applied", "is not signed")
	signed := b.signedBy(who, "2")
	b.want("2")
	unsigned := b.pushOn("3", 1)
	b.want("2", unsigned+" is held", "is not signed")
	b.annotate(v1alpha1.CommitOf(unsigned))
	b.want("2", "is not signed")
	b.lose()
	b.want("2", "is not signed")
	if got := b.repository.Status.LastAttemptedRevision; got != signed {
		t.Errorf("the status says %s, want %s", got, signed)
	}
	b.signedBy(who, "4")
	b.want("4")
}
