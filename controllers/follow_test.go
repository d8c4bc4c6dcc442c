package controllers

import (
	"maps"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
)

// someRequest is noted beside the places, because a test that finds no files finds no returns either.
const someRequest = "a request"

// followed are the places at which the operator goes back into a file that it left, while it works on objects whose path has a text: a file stands on
// the stack of a request, below it another file, and below that one the first again. A reader who follows an app from its event to what is applied turns
// back at these places.
type followed struct {
	mu     sync.Mutex
	places map[string]map[string]bool
}

// follow notes the places for requests whose path has the text.
func (f *followed) follow(text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.places == nil {
		f.places = map[string]map[string]bool{}
	}
	f.places[text] = map[string]bool{}
}

// of returns the places that were noted for a text, sorted.
func (f *followed) of(text string) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Sorted(maps.Keys(f.places[text]))
}

func (f *followed) record(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		f.mu.Lock()
		for text, places := range f.places {
			if !strings.Contains(r.URL.Path, text) {
				continue
			}
			stack := files()
			if len(stack) > 0 {
				places[someRequest] = true
			}
			for _, place := range returns(stack) {
				places[place] = true
			}
		}
		f.mu.Unlock()
		return next.RoundTrip(r)
	})
}

// files returns the files of this module on the stack, outermost first, and each once for calls that stay in it.
func files() []string {
	counters := make([]uintptr, 200)
	frames := runtime.CallersFrames(counters[:runtime.Callers(3, counters)])
	var all []string
	for {
		frame, more := frames.Next()
		if name, ours := strings.CutPrefix(frame.File, "github.com/kubeop/kubeop/"); ours && !strings.HasSuffix(name, "_test.go") {
			all = append(all, name)
		}
		if !more {
			slices.Reverse(all)
			return slices.Compact(all)
		}
	}
}

// returns returns the pairs of files, as "from → to", in which a call leads into a file that is on the stack already.
func returns(stack []string) (places []string) {
	for i, file := range stack {
		if i > 0 && slices.Contains(stack[:i], file) {
			places = append(places, stack[i-1]+" → "+file)
		}
	}
	return places
}

func TestReturnsAreFound(t *testing.T) {
	if got := returns([]string{"a", "b", "a", "c", "b"}); !slices.Equal(got, []string{"b → a", "c → b"}) {
		t.Errorf("got %q", got)
	}
	if got := returns([]string{"a", "b", "c"}); got != nil {
		t.Errorf("got %q", got)
	}
}

// TestFollowingAnAppSeldomReturnsToAFile: at most 10 places for a Git app and 5 for a Helm app, from the first Reconcile to Ready, and through a change.
func TestFollowingAnAppSeldomReturnsToAFile(t *testing.T) {
	t.Run("Git", func(t *testing.T) {
		n := newTeam(t, "followedgit")
		n.follows(10, func() {
			source := n.gitApp(map[string]string{"config.yaml": "{apiVersion: v1, kind: ConfigMap, metadata: {name: web}, data: {greeting: one}}"}, "path: .")
			n.ready(n.app("shop", "web"))
			n.greets("one")
			source.Push(map[string]string{"config.yaml": "{apiVersion: v1, kind: ConfigMap, metadata: {name: web}, data: {greeting: two}}"})
			n.greets("two")
		})
	})
	t.Run("Helm", func(t *testing.T) {
		n := newTeam(t, "followedhelm")
		n.follows(5, func() {
			n.push(helmApp("values: {greeting: one}"))
			n.ready(n.app("shop", "web"))
			n.greets("one")
			n.push(helmApp("values: {greeting: two}"))
			n.greets("two")
		})
	})
}

// follows runs do, which delivers apps, and wants at most so many returns in the requests of the namespace.
func (n *team) follows(most int, do func()) {
	n.t.Helper()
	path := "/namespaces/" + n.namespace() + "/"
	n.stacks.follow(path)
	do()
	places := n.stacks.of(path)
	if !slices.Contains(places, someRequest) {
		n.t.Fatal("no request came from a file of this module; build the test with -trimpath, as the Makefile does")
	}
	places = slices.DeleteFunc(places, func(place string) bool { return place == someRequest })
	n.t.Logf("%d returns:\n%s", len(places), strings.Join(places, "\n"))
	if len(places) > most {
		n.t.Errorf("%d returns to files that were left, want at most %d", len(places), most)
	}
}
