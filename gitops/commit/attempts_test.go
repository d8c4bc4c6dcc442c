package commit

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/fstest"
	"testing/synctest"

	"k8s.io/utils/clock"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/folder"
	"github.com/kubeop/kubeop/delivery/fetch/git"
)

// scripted is a branch that answers each fetch and each push with the next error.
type scripted struct {
	fetches, pushes []error
	// lose: a push that is answered with an error arrives nevertheless.
	lose   bool
	files  fstest.MapFS
	log    map[string]string
	pushed []git.Proposed
}

func next(answers *[]error) (err error) {
	if len(*answers) > 0 {
		err, *answers = (*answers)[0], (*answers)[1:]
	}
	return err
}

func (*scripted) Name() string { return "main" }

func (s *scripted) Fetch(context.Context) (git.Commit, error) {
	hash := "newest"
	if s.log != nil {
		hash = "lost"
	}
	return git.Commit{Hash: hash, Root: folder.FromFS(s.files).Folder(".")}, next(&s.fetches)
}

func (s *scripted) Messages(_ context.Context, newest git.Commit, since string, _ int) (map[string]string, error) {
	if newest.Hash == "lost" && since != "newest" {
		return nil, errors.New("all commits are read again")
	}
	return s.log, nil
}

func (s *scripted) Push(_ context.Context, p git.Proposed) ([]string, error) {
	s.pushed = append(s.pushed, p)
	err := next(&s.pushes)
	if s.lose {
		s.log = map[string]string{"pushed": p.Draft.Commits[0].Message}
	}
	return slices.Repeat([]string{"pushed"}, len(p.Draft.Commits)), err
}

func TestOnlyPassingFailuresOfAPushAreTriedAgain(t *testing.T) {
	away, slow, moved := failure.ErrUnavailable, failure.ErrSlow, git.ErrMoved
	for name, c := range map[string]struct {
		branch  scripted
		isNew   bool
		want    Result
		wantErr error
	}{
		"at once":                         {want: Result{Hash: "pushed", Attempts: 1}},
		"others pushed before":            {branch: scripted{pushes: []error{moved}}, want: Result{Hash: "pushed", Attempts: 2}},
		"others made the new branch":      {branch: scripted{pushes: []error{moved}}, isNew: true, want: Result{Hash: "pushed", Attempts: 1}, wantErr: moved},
		"a slow server":                   {branch: scripted{fetches: []error{slow, slow, slow}}, want: Result{Hash: "pushed", Attempts: 1}},
		"a server that is away":           {branch: scripted{fetches: []error{away, slow, away, slow}}, wantErr: slow},
		"others pushed in between":        {branch: scripted{pushes: []error{away, away, away, moved, away, away, away}}, want: Result{Hash: "pushed", Attempts: 8}},
		"any other failure":               {branch: scripted{fetches: []error{ErrMissing}}, wantErr: ErrMissing},
		"others wrote the same meanwhile": {branch: scripted{fetches: []error{away}, files: fstest.MapFS{"a": {Data: []byte("1")}}}, want: Result{Hash: "newest", Unchanged: true}},
		"a lost answer":                   {branch: scripted{pushes: []error{away}, lose: true}, want: Result{Hash: "pushed", Attempts: 1}},
		"a lost answer, then none":        {branch: scripted{fetches: []error{nil, away}, pushes: []error{away}, lose: true}, want: Result{Hash: "pushed", Attempts: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := request("r", Create{"a", []byte("1")})
				r.New = c.isNew
				r.Base = fileOf("")
				w := &Writer{Clock: clock.RealClock{}}
				now := w.Clock.Now()
				got, err := w.Write(t.Context(), &c.branch, r)
				if !errors.Is(err, c.wantErr) || c.wantErr == nil && err != nil {
					t.Errorf("got error %v, want %v", err, c.wantErr)
				}
				if c.wantErr == nil && got != c.want {
					t.Errorf("got %+v, want %+v", got, c.want)
				}
				if len(c.branch.pushed) > 0 {
					first := c.branch.pushed[0]
					if c := first.Draft.Commits[0]; first.New != r.New || c.At.Before(now) || c.Message != "Change r\n\nFor a test.\n\nKubeop-Request: r\n" {
						t.Errorf("pushed %+v", c)
					}
				}
			})
		})
	}
}

func TestAMessageWithoutABodyHasTwoParts(t *testing.T) {
	if got := (Request{ID: "r", Title: " Change it\n"}).message(); got != "Change it\n\nKubeop-Request: r\n" {
		t.Errorf("got %q", got)
	}
}

func TestTheIDOfARequestIsInOneLine(t *testing.T) {
	for _, id := range []string{"", " r", "r\n", "r\n\nKubeop-Request: other"} {
		branch := &scripted{}
		if _, err := (&Writer{Clock: clock.RealClock{}}).Write(t.Context(), branch, request(id, Create{"a", []byte("1")})); !errors.Is(err, ErrInvalidEdit) || len(branch.pushed) > 0 {
			t.Errorf("%q: got %v after %d pushes", id, err, len(branch.pushed))
		}
	}
}

// TestTheIDOfACommit is that of its trailers, and not what a person wrote in its body.
func TestTheIDOfACommit(t *testing.T) {
	forged := Request{ID: "mine", Title: "Change it", Body: "Kubeop-Request: other\n\nKubeop-Request: another"}
	for message, want := range map[string]string{
		forged.message(): "mine", "Change it\n\nKubeop-Request: r": "r", "Change it\n\nKubeop-Request: r\nSigned-off-by: Ann <a@example.com>\n\n": "r",
		"": "", "Change it\n": "", "Change it\n\nKubeop-Request: r\n\nSee above.\n": "", "Revert it\n\nNot Kubeop-Request: r\n": "",
	} {
		if got := idIn(message); got != want {
			t.Errorf("%q: got %q, want %q", message, got, want)
		}
	}
}

// TestAnEditOfAFolderAsAFileCanNeverBeMade: neither in the newest files nor if the requester saw that.
func TestAnEditOfAFolderAsAFileCanNeverBeMade(t *testing.T) {
	files := func(text string) *folder.Folder {
		return folder.FromFS(fstest.MapFS{text: {Data: []byte("a: 1\n")}}).Folder(".")
	}
	file, dir := files("a.yaml"), files("a.yaml/b")
	for name, e := range map[string]Edit{"a new file": Create{"a.yaml", []byte("a: 2\n")}, "a field": Set{File: "a.yaml", Fields: []Field{{Path: field(t, "a"), Value: 2}}}} {
		for which, at := range map[string][2]*folder.Folder{"the newest": {file, dir}, "the base": {dir, file}} {
			if changes, err := Changes(at[0], at[1], []Edit{e}); err == nil || len(changes) > 0 {
				t.Errorf("%s, a folder in %s: %v, %v", name, which, changes, err)
			}
		}
	}
}
