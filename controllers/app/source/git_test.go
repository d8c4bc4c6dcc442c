package source

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app/subject"
	"github.com/kubeop/kubeop/delivery/fetch/cache"
	"github.com/kubeop/kubeop/delivery/fetch/folder"
	"github.com/kubeop/kubeop/delivery/fetch/git"
)

// TestTheRevisionChangesOnlyWithTheFilesThatAnAppReads: an app was built from C1, and the repository is at C2, where the files that it reads are the same or not.
func TestTheRevisionChangesOnlyWithTheFilesThatAnAppReads(t *testing.T) {
	const same, other = "as in C1", "something else"
	for name, tc := range map[string]struct {
		// digest is that of the app's files in C2: "" before a build has ended.
		digest string
		// anew: the spec changed.
		anew bool
		was  string
		want string
	}{
		"nothing that it reads changed":   {digest: same, was: "C1", want: "C1"},
		"what it reads changed":           {digest: other, was: "C1", want: "C2"},
		"no build has ended":              {was: "C1", want: "C1"},
		"no build has ended, a new spec":  {anew: true, was: "C1", want: "C2"},
		"the same files, a new spec":      {digest: same, anew: true, was: "C1", want: "C2"},
		"the first":                       {digest: other, want: "C2"},
		"the first, no build of it ended": {want: "C2"},
	} {
		t.Run(name, func(t *testing.T) {
			app := &v1alpha1.App{}
			app.Status.LastAttemptedRevision, app.Status.SourceDigest = tc.was, same
			if tc.anew {
				app.Generation++
			}
			found := &Found{Files: Files{Revision: "C2", Digest: tc.digest}}
			found.recognize(app)
			found.Record(app)
			if got := app.Status.LastAttemptedRevision; got != tc.want {
				t.Errorf("the reported revision is %s, want %s", got, tc.want)
			}
			if got := app.Status.SourceDigest; tc.want == "C1" && got != same {
				t.Errorf("the digest is %q, want that of C1", got)
			}
		})
	}
}

// TestABuildThatDidNotEndKeepsTheRevision makes the list of files that the app reads unknown until a build ends.
func TestABuildThatDidNotEndKeepsTheRevision(t *testing.T) {
	f, app := &Fetcher{}, &v1alpha1.App{}
	app.Status.LastAttemptedRevision, app.Status.SourceDigest = "C1", "as in C1"
	found := &Found{Files: Files{Revision: "C2", reading: (&folder.Folder{}).Reading()}}
	found.recognize(app)
	f.Built((&subject.Subjects{}).New(app), found, "")
	found.Record(app)
	if got := app.Status.LastAttemptedRevision; got != "C1" {
		t.Errorf("the reported revision is %s, want %q: no build has ended", got, "C1")
	}
	for range f.reads.Range {
		t.Error("reads of a build that did not end are remembered")
	}
}

// TestTheDigestOfTheReadsIdentifiesACommit: the digest of a commit is computed from the files of the last build, and is unknown without one.
func TestTheDigestOfTheReadsIdentifiesACommit(t *testing.T) {
	commit := git.Commit{Revision: "C2", Root: &folder.Folder{}}
	read, err := commit.Root.DigestOf(folder.Reads{"."})
	if err != nil {
		t.Fatal(err)
	}
	for want, reads := range map[string]folder.Reads{read: {"."}, "": nil} {
		found, err := (&Found{reads: reads}).ofCommit(commit)
		if err != nil || found.Digest != want || found.Revision != "C2" {
			t.Errorf("reads %q: got digest %q of %s, error %v; want %q", reads, found.Digest, found.Revision, err, want)
		}
	}
}

// TestAppsOfACommitShareOneCause: only an app that was changed by hand since then has its own.
func TestAppsOfACommitShareOneCause(t *testing.T) {
	cause := func(uid, revision, last string, generation int64) string {
		app := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid), Generation: generation}}
		app.Annotations = map[string]string{v1alpha1.RevisionAnnotation: revision}
		app.Status.ObservedGeneration = -1
		p := &pass{Subject: (&subject.Subjects{}).New(app), found: &Found{}, last: &lastQuery{cause: last}}
		return p.causeOf(cache.Question{Generation: generation, Request: "now"})
	}
	common := cause("1", "main@sha1:1", "", 1)
	if other := cause("2", "main@sha1:1", "", 4); common == "" || other != common {
		t.Errorf("of one commit: %q and %q", common, other)
	}
	edited, again := cause("1", "main@sha1:1", common, 2), cause("1", "main@sha1:1", common, 3)
	for what, differs := range map[string]bool{
		"another commit": cause("1", "main@sha1:2", common, 2) != common, "an edit": edited != common, "another edit": again != edited,
		"apps without a commit": cause("1", "", "", 1) != cause("2", "", "", 1),
	} {
		if !differs {
			t.Errorf("%s has the same cause", what)
		}
	}
}
