package commit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubeop/kubeop/delivery/fetch/draft"
	"github.com/kubeop/kubeop/delivery/fetch/folder"
	"github.com/kubeop/kubeop/delivery/fetch/git"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

// held is a branch of which the first push waits until it is let go.
type held struct {
	Branch
	*Writer
	begun, free chan struct{}
	pushes      int
	first       *answers
}

// answers are those to requests, in their order.
type answers struct {
	all     sync.WaitGroup
	results []Result
	errs    []error
}

// hold begins to push a first request to a branch, so that those that enter afterwards are one group.
func hold(ctx context.Context, to Branch) *held {
	return holdRequest(ctx, to, request("first", Create{"first", []byte("1")}))
}

func holdRequest(ctx context.Context, to Branch, r Request) *held {
	h := &held{Branch: to, Writer: &Writer{Clock: clock.RealClock{}}, begun: make(chan struct{}), free: make(chan struct{})}
	h.first = h.enter(ctx, r)
	<-h.begun
	return h
}

// Push implements Branch.
func (h *held) Push(ctx context.Context, p git.Proposed) ([]string, error) {
	if h.pushes++; h.pushes == 1 {
		close(h.begun)
		select {
		case <-h.free:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return h.Branch.Push(ctx, p)
}

// enter writes requests. It returns when they are in the queue, one after the other.
func (h *held) enter(ctx context.Context, requests ...Request) *answers {
	a := &answers{results: make([]Result, len(requests)), errs: make([]error, len(requests))}
	for i, r := range requests {
		before := h.callers()
		a.all.Go(func() { a.results[i], a.errs[i] = h.Write(ctx, h, r) })
		for h.callers() == before {
			time.Sleep(time.Millisecond)
		}
	}
	return a
}

func (h *held) callers() (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, q := range h.queues {
		for _, p := range q.requests {
			n += int(p.callers.Load())
		}
	}
	return n
}

// let lets the first push go, and waits for the answers.
func (h *held) let(all ...*answers) {
	close(h.free)
	for _, a := range append(all, h.first) {
		a.all.Wait()
	}
}

// TestAGroupIsOnePush: the requests that enter during a push are pushed together, each with its own commit upon the one before.
func TestAGroupIsOnePush(t *testing.T) {
	s := serve(t)
	h := hold(t.Context(), s.remote())
	two := request("two", Create{"two", []byte("2")})
	two.Author.Name = "Bob"
	a := h.enter(t.Context(), request("one", Create{"one", []byte("1")}), two, request("three", Create{"three", []byte("3")}))
	h.let(a)
	if err := errors.Join(a.errs...); err != nil || h.pushes != 2 {
		t.Fatalf("%d pushes, %v", h.pushes, err)
	}
	got := s.bare("log", "--reverse", "--format=%H %an %(trailers:key="+Trailer+",valueonly,separator=)", s.first+"..main")
	want := fmt.Sprintf("%s Ann first\n%s Ann one\n%s Bob two\n%s Ann three", h.first.results[0].Hash, a.results[0].Hash, a.results[1].Hash, a.results[2].Hash)
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if files := s.bare("diff", "--name-only", a.results[0].Hash, a.results[1].Hash); files != "two" {
		t.Errorf("the second commit changes %s", files)
	}
	s.bare("fsck", "--strict")
}

// TestARequestThatCannotBeMadeFailsAlone, and the others of its group are pushed.
// panicking stands for a parser that cannot handle a file.
type panicking struct{}

func (panicking) changes(_, _ *folder.Folder) ([]draft.Change, error) { panic("a file") }

func TestARequestThatCannotBeMadeFailsAlone(t *testing.T) {
	s := serve(t)
	h := hold(t.Context(), s.remote())
	a := h.enter(t.Context(),
		request("good", Create{"a", []byte("1")}), request("conflict", Create{"a", []byte("2")}), request("same", Create{"a", []byte("1")}),
		request("missing", Set{File: "none.yaml"}), request("half", Create{"b", []byte("1")}, Create{appFile + "/x", nil}), request("last", Create{"c", []byte("1")}),
		request("panic", panicking{}),
	)
	h.let(a)
	for i, want := range []error{nil, ErrConflict, nil, ErrMissing, nil, nil, ErrInvalidEdit} {
		if i != 4 && !errors.Is(a.errs[i], want) || want == nil && (a.errs[i] != nil) != (i == 4) {
			t.Errorf("request %d: %v, want %v", i, a.errs[i], want)
		}
	}
	if !a.results[2].Unchanged || a.results[2].Hash != a.results[0].Hash {
		t.Errorf("what a commit of the group has is no change: %+v", a.results[2])
	}
	if got := s.bare("log", "--reverse", "--format=%(trailers:key="+Trailer+",valueonly,separator=)", s.first+"..main"); got != "first\ngood\nlast" || h.pushes != 2 {
		t.Errorf("%d pushes of %q", h.pushes, got)
	}
	s.bare("fsck", "--strict")
	if unused := s.bare("fsck", "--unreachable"); unused != "" {
		t.Errorf("what failed was pushed, too: %s", unused)
	}
}

func TestARequestThatTheServerRefusesHoldsUpNoOther(t *testing.T) {
	s := serve(t)
	hooks := filepath.Join(s.Root, s.Name, "hooks")
	script := "#!/bin/sh\nread old new ref\nif git ls-tree --name-only $new files/ | grep -q bad; then echo 'no bad files' >&2; exit 1; fi\n"
	if err := errors.Join(os.MkdirAll(hooks, 0o755), os.WriteFile(filepath.Join(hooks, "pre-receive"), []byte(script), 0o755)); err != nil { //nolint:gosec // Git runs it.
		t.Fatal(err)
	}
	h := hold(t.Context(), s.remote())
	var requests []Request
	for i := range 7 {
		id := fmt.Sprintf("good%d", i)
		if i == 5 {
			id = "bad"
		}
		requests = append(requests, request(id, Create{"files/" + id, []byte(id)}))
	}
	a := h.enter(t.Context(), requests...)
	h.let(a)
	for i, err := range a.errs {
		if i == 5 {
			sources.WantError(t, err, git.ErrRefused, "no bad files")
		} else if err != nil {
			t.Errorf("request %d: %v", i, err)
		}
	}
	if ids := s.ids(); len(ids) != 7 || ids["bad"] > 0 {
		t.Errorf("the branch has %v", ids)
	}
}

// TestOthersPushBeforeAGroup: it is made again upon their commit, and only what they changed, too, is a conflict.
func TestOthersPushBeforeAGroup(t *testing.T) {
	s := serve(t)
	r := racing(t, s, map[string]string{"theirs": "1"})
	push := r.push
	r.push = nil
	h := hold(t.Context(), r)
	a := h.enter(t.Context(), request("one", Create{"one", []byte("1")}), request("two", Create{"theirs", []byte("2")}), request("three", Create{"three", []byte("3")}))
	r.push = func() {
		r.push = func() { // Before the second push, the one of the group.
			s.Git("pull", "--quiet", "origin", "main")
			push()
		}
	}
	h.let(a)
	if a.errs[0] != nil || !errors.Is(a.errs[1], ErrConflict) || a.errs[2] != nil || a.results[2].Attempts != 2 {
		t.Errorf("%+v, %v", a.results, a.errs)
	}
	if ids := s.ids(); ids["one"] != 1 || ids["two"] != 0 || ids["three"] != 1 || s.bare("show", "main:theirs") != "1" {
		t.Errorf("the branch has %v", ids)
	}
}

// TestALostAnswerToAGroup, after which others push: nothing is committed twice.
func TestALostAnswerToAGroup(t *testing.T) {
	s := serve(t)
	h := hold(t.Context(), s.remote())
	set := func(id string, n int) Request {
		r := request(id, Set{File: appFile, Fields: []Field{{Path: field(t, "spec.image.replicas"), Value: n, Was: n - 1}}})
		return r
	}
	a := h.enter(t.Context(), set("three", 3), set("four", 4), set("five", 5))
	pushes := 0
	s.server.Set(func() {
		s.server.Wrap = func(w http.ResponseWriter, r *http.Request, next http.Handler) bool {
			if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "git-receive-pack") {
				return false
			}
			if pushes++; pushes != 2 {
				return false
			}
			next.ServeHTTP(httptest.NewRecorder(), r)
			s.Git("pull", "--quiet", "origin", "main")
			s.Write(appFile, appText) // Back to 2 replicas: the edits could be made again.
			s.Push("theirs")
			panic(http.ErrAbortHandler)
		}
	})
	h.let(a)
	ids := s.ids()
	for i, id := range []string{"three", "four", "five"} {
		want := s.bare("log", "--format=%H", "--grep=^Kubeop-Request: "+id+"$", "main")
		if got := a.results[i]; a.errs[i] != nil || ids[id] != 1 || got.Hash != want || got.Unchanged {
			t.Errorf("%s: %+v, %v; committed %d times, in %s", id, got, a.errs[i], ids[id], want)
		}
	}
	if text := s.bare("show", "main:"+appFile); pushes != 2 || text != strings.TrimSpace(appText) {
		t.Errorf("what others changed afterwards is undone in %d pushes:\n%s", pushes, text)
	}
	// So it is for a process that starts afterwards, and gets a request again.
	got, err := (&Writer{Clock: clock.RealClock{}}).Write(t.Context(), s.remote(), set("three", 3))
	if err != nil || got.Hash != a.results[0].Hash || got.Attempts != 0 || got.Unchanged || pushes != 2 {
		t.Errorf("written again: %+v, %v, want %s", got, err, a.results[0].Hash)
	}
}

// TestRequestsWithTheSameIDAreOneRequest, for callers of one process that wait together, and for two processes.
func TestRequestsWithTheSameIDAreOneRequest(t *testing.T) {
	s := serve(t)
	h := hold(t.Context(), s.remote())
	r := request("twice", Create{"twice", []byte("1")})
	a := h.enter(t.Context(), r, r, request("first", Create{"first", []byte("1")}))
	h.let(a)
	if err := errors.Join(a.errs...); err != nil || a.results[0] != a.results[1] || a.results[2] != h.first.results[0] {
		t.Errorf("%+v, %v", a.results, err)
	}
	var all sync.WaitGroup
	hashes := make([]string, 4)
	for i := range hashes {
		to := s.remote()
		all.Go(func() {
			got, err := (&Writer{Clock: clock.RealClock{}}).Write(t.Context(), to, request("everywhere", Create{"everywhere", []byte("1")}))
			if hashes[i] = got.Hash; err != nil || got.Unchanged {
				t.Errorf("process %d: %+v, %v", i, got, err)
			}
		})
	}
	all.Wait()
	if ids := s.ids(); ids["first"] != 1 || ids["twice"] != 1 || ids["everywhere"] != 1 || strings.Join(hashes, "") != strings.Repeat(hashes[0], 4) {
		t.Errorf("committed %v, answered %q", ids, hashes)
	}
}

// TestACallerThatLeavesHoldsUpNoOther: the push under way goes on, a request that was not pushed yet is not committed, and one
// for which another waits is.
func TestACallerThatLeavesHoldsUpNoOther(t *testing.T) {
	s := serve(t)
	ctx, end := context.WithCancel(t.Context())
	h := hold(ctx, s.remote())
	shared := request("shared", Create{"shared", []byte("1")})
	gone := h.enter(ctx, request("gone", Create{"gone", []byte("1")}), shared)
	stays := h.enter(t.Context(), shared, request("stays", Create{"stays", []byte("1")}))
	end()
	gone.all.Wait()
	h.first.all.Wait()
	for _, err := range append(gone.errs, h.first.errs...) {
		sources.WantError(t, err, context.Canceled, "the commit could not be pushed in time")
	}
	h.let(stays)
	if err := errors.Join(stays.errs...); err != nil || stays.results[0].Attempts != 1 {
		t.Errorf("%+v, %v", stays.results, err)
	}
	if ids := s.ids(); len(ids) != 3 || ids["gone"] > 0 {
		t.Errorf("the branch has %v", ids)
	}
}

// TestAPushThatNobodyWaitsForGoesOn, because it may have arrived. The request gets its result.
func TestAPushThatNobodyWaitsForGoesOn(t *testing.T) {
	s := serve(t)
	ctx, end := context.WithCancelCause(t.Context())
	r := request("first", Create{"first", []byte("1")})
	results := make(chan Result, 1)
	r.Alone = func(done Result) { results <- done }
	h := holdRequest(ctx, s.remote(), r)
	end(errors.New("the caller hung up"))
	h.first.all.Wait()
	if err := h.first.errs[0]; err == nil || err.Error() != "the commit could not be pushed in time: the caller hung up after 1 attempts" {
		t.Errorf("got %v", err)
	}
	h.let()
	if done := <-results; done.Hash != s.bare("rev-parse", "main") || done.Unchanged {
		t.Errorf("the result is %+v", done)
	}
	if _, err := h.Write(t.Context(), h, request("next", Create{"next", []byte("1")})); err != nil {
		t.Error(err)
	}
	if ids := s.ids(); ids["first"] != 1 || ids["next"] != 1 {
		t.Errorf("the branch has %v", ids)
	}
}

// fetching is a branch of which the first fetch waits until it is let go.
type fetching struct {
	scripted
	begun, free chan struct{}
	once        sync.Once
}

// Fetch implements Branch.
func (f *fetching) Fetch(ctx context.Context) (git.Commit, error) {
	f.once.Do(func() {
		close(f.begun)
		select {
		case <-f.free:
		case <-ctx.Done():
		}
	})
	if ctx.Err() != nil {
		return git.Commit{}, ctx.Err()
	}
	return f.scripted.Fetch(ctx)
}

// counted counts how often it is made.
type counted struct{ made *atomic.Int32 }

func (e counted) changes(_, _ *folder.Folder) ([]draft.Change, error) {
	e.made.Add(1)
	return nil, nil
}

// TestNothingIsMadeForCallersThatLeft while a turn was fetching: neither for one of several, nor if all left, which ends the turn.
func TestNothingIsMadeForCallersThatLeft(t *testing.T) {
	for name, stays := range map[string]bool{"one stays": true, "all left": false} {
		t.Run(name, func(t *testing.T) {
			var made atomic.Int32
			to := &fetching{begun: make(chan struct{}), free: make(chan struct{})}
			h := &held{Branch: to, Writer: &Writer{Clock: clock.RealClock{}}, begun: make(chan struct{}), free: make(chan struct{})}
			ctx, leave := context.WithCancel(t.Context())
			gone := h.enter(ctx, request("gone", counted{&made}))
			<-to.begun
			left := &answers{}
			if stays {
				left = h.enter(t.Context(), request("stays", counted{&made}))
			}
			leave()
			gone.all.Wait()
			sources.WantError(t, gone.errs[0], context.Canceled, "the commit could not be pushed in time")
			if stays {
				close(to.free)
			}
			left.all.Wait()
			for h.queued() > 0 {
				time.Sleep(time.Millisecond)
			}
			if err := errors.Join(left.errs...); err != nil || made.Load() != int32(len(left.errs)) {
				t.Errorf("%d requests were made, %v", made.Load(), err)
			}
		})
	}
}

func (h *held) queued() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.queues)
}

// TestMakingCommitsIsBounded: those that take too long are left to the next push, so that the first are answered.
func TestMakingCommitsIsBounded(t *testing.T) {
	c := clocktesting.NewFakePassiveClock(time.Now())
	k, first := &known{commits: map[string]string{}}, &waiting{Request: request("slow", slow{c})}
	first.callers.Add(1)
	took, err := k.chain(t.Context(), draft.New(), git.Commit{Root: fileOf("")}, c, []*waiting{first, {}})
	if len(took) != 1 || err != nil {
		t.Errorf("%d requests, %v", len(took), err)
	}
}

type slow struct {
	*clocktesting.FakePassiveClock
}

func (e slow) changes(_, _ *folder.Folder) ([]draft.Change, error) {
	e.SetTime(e.Now().Add(2 * maxMaking))
	return nil, nil
}

func TestLaterRequestsKnowTheFilesOfARestoredFolder(t *testing.T) {
	s := serve(t)
	tree := s.Git("rev-parse", s.first+":projects/shop")
	s.Git("rm", "--quiet", "-r", "projects/shop")
	s.Push("theirs")
	h := hold(t.Context(), s.remote())
	back := request("back", Restore{"projects/shop", tree})
	set := request("set", Set{File: appFile, Fields: []Field{{Path: field(t, "spec.image.replicas"), Value: 3, Was: 2}}})
	a := h.enter(t.Context(), back, set)
	h.let(a)
	if err := errors.Join(a.errs...); err != nil || h.pushes != 3 || !strings.Contains(s.bare("show", "main:"+appFile), "replicas: 3 # two zones") {
		t.Errorf("%v after %d pushes", err, h.pushes)
	}
}

func TestRequestsBeyondTheBoundsAreInTheNextPush(t *testing.T) {
	var large, many []Request
	for i := range 5 {
		large = append(large, request(fmt.Sprintf("w%d", i), Create{fmt.Sprintf("f%d", i), bytes.Repeat([]byte{byte(i)}, maxBytes/4)}))
	}
	for i := range maxRequests + 1 {
		many = append(many, request(fmt.Sprintf("w%d", i), Create{fmt.Sprintf("f%d", i), nil}))
	}
	for name, requests := range map[string][]Request{"bytes": large, "requests": many} {
		branch := &scripted{}
		h := hold(t.Context(), branch)
		a := h.enter(t.Context(), requests...)
		h.let(a)
		if err := errors.Join(a.errs...); err != nil || len(branch.pushed) != 3 || len(branch.pushed[2].Draft.Commits) != 1 {
			t.Errorf("%s: %v after %d pushes", name, err, len(branch.pushed))
		}
	}
}
