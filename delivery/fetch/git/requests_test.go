package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"testing"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/kubeop/kubeop/delivery/fetch/disk"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/pack"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
)

// capable is a server with these capabilities.
func capable(t *testing.T, names string) *capability.List {
	t.Helper()
	list := capability.NewList()
	for _, name := range strings.Fields(names) {
		if err := list.Add(capability.Capability(name)); err != nil {
			t.Fatal(err)
		}
	}
	return list
}

// requested are the capabilities of a request.
func requested(list *capability.List) string {
	var names []string
	for _, c := range list.All() {
		names = append(names, c.String())
	}
	sort.Strings(names)
	return strings.Join(names, " ")
}

func TestARequestUsesOnlyWhatTheServerSupports(t *testing.T) {
	want, have := plumbing.Hash{1}, plumbing.Hash{2}
	const modern = "multi_ack_detailed multi_ack side-band-64k side-band ofs-delta no-progress shallow thin-pack filter"
	for name, tc := range map[string]struct {
		server string
		haves  []plumbing.Hash
		depth  int
		caps   string
		kept   []plumbing.Hash
	}{
		"a first fetch":        {modern, nil, 1, "multi_ack_detailed no-progress ofs-delta shallow side-band-64k", nil},
		"a later fetch":        {modern, []plumbing.Hash{have}, 1, "multi_ack_detailed no-progress ofs-delta shallow side-band-64k thin-pack", []plumbing.Hash{have}},
		"the whole history":    {modern, nil, 0, "multi_ack_detailed no-progress ofs-delta shallow side-band-64k", nil},
		"an old server":        {"multi_ack side-band shallow", []plumbing.Hash{have}, 1, "multi_ack shallow side-band", []plumbing.Hash{have}},
		"a server without any": {"", []plumbing.Hash{have}, 1, "", nil},
		"one without shallow":  {"ofs-delta thin-pack", []plumbing.Hash{have}, 1, "ofs-delta", nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := newRequest(capable(t, tc.server), []plumbing.Hash{want}, tc.haves, tc.depth)
			if err != nil {
				t.Fatal(err)
			}
			if caps := requested(got.Capabilities); caps != tc.caps {
				t.Errorf("requested with %q, want %q", caps, tc.caps)
			}
			if diff := cmp.Diff([][]plumbing.Hash{{want}, tc.kept, tc.kept}, [][]plumbing.Hash{got.Wants, got.Haves, got.Shallows}, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("wants, haves, shallow commits: %s", diff)
			}
			depth := packp.DepthCommits(0)
			if strings.Contains(tc.server, "shallow") {
				depth = packp.DepthCommits(tc.depth)
			}
			if got.Depth != depth {
				t.Errorf("the depth is %v, want %v", got.Depth, depth)
			}
		})
	}
}

func TestAHistoryIsRequestedWithoutFilesIfPossible(t *testing.T) {
	want, earlier := plumbing.Hash{1}, plumbing.Hash{2}
	for name, tc := range map[string]struct {
		server   string
		filter   bool
		filtered bool
	}{
		"without files":            {"shallow thin-pack filter", true, true},
		"with files":               {"shallow thin-pack filter", false, false},
		"a server without filters": {"shallow thin-pack", true, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := historyRequest(capable(t, tc.server), want, between{earlier: earlier, generations: 7, filter: tc.filter})
			if err != nil {
				t.Fatal(err)
			}
			if filtered := got.Filter != "" && got.Capabilities.Supports(capability.Filter); filtered != tc.filtered || tc.filtered && got.Filter != packp.FilterTreeDepth(0) {
				t.Errorf("it is filtered by %q with %q", got.Filter, requested(got.Capabilities))
			}
			if got.Depth != packp.DepthCommits(7) || got.Capabilities.Supports(capability.ThinPack) {
				t.Errorf("the depth is %v, with %q", got.Depth, requested(got.Capabilities))
			}
			if diff := cmp.Diff([][]plumbing.Hash{{want}, {earlier}, nil}, [][]plumbing.Hash{got.Wants, got.Haves, got.Shallows}, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("wants, haves, shallow commits: %s", diff)
			}
		})
	}
}

func TestErrorsForWhichNoNewStoreIsTried(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, tc := range map[string]struct {
		ctx  context.Context
		err  error
		want bool
	}{
		"a broken connection":  {t.Context(), io.ErrUnexpectedEOF, false},
		"a damaged store":      {t.Context(), plumbing.ErrObjectNotFound, false},
		"a deleted folder":     {t.Context(), disk.Failed("x", fs.ErrNotExist), false},
		"a full disk":          {t.Context(), disk.Failed("x", errors.New("no space left")), true},
		"the end of the fetch": {ended, io.ErrUnexpectedEOF, true},
		"too large":            {t.Context(), failure.New(failure.ErrTooLarge, "x"), true},
		"no access":            {t.Context(), failure.New(failure.ErrAuthentication, "x"), true},
		"invalid":              {t.Context(), failure.New(failure.ErrInvalid, "x"), true},
		"not found":            {t.Context(), failure.New(failure.ErrNotFound, "x"), true},
		"a server's error":     {t.Context(), failure.New(failure.ErrServer, "x"), true},
		"a pack that is none":  {t.Context(), fmt.Errorf("x: %w", pack.ErrUnfit), true},
		"a refused request":    {t.Context(), errRefused, false},
	} {
		if got := isFinal(tc.ctx, tc.err); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

// lines are packets with a flush at the end.
func lines(t *testing.T, text ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	encoder := pktline.NewEncoder(&out)
	for _, line := range text {
		if err := encoder.EncodeString(line + "\n"); err != nil {
			t.Fatal(err)
		}
	}
	if err := encoder.Flush(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestTheAnswerToAPushSaysWhyItWasRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		report   []byte
		progress string
		is       error
		says     string
	}{
		"accepted":           {lines(t, "unpack ok", "ok refs/heads/main"), "all is well\n", nil, ""},
		"refused":            {lines(t, "unpack ok", "ng refs/heads/main protected hunter22"), "", ErrRefused, "the server refused the push: protected ***"},
		"refused with words": {lines(t, "unpack ok", "ng refs/heads/main protected"), "ask hunter22\x1b[2J\n", ErrRefused, "the server refused the push: protected: ask ***\ufffd[2J"},
		"not unpacked":       {lines(t, "unpack index-pack failed", "ok refs/heads/main"), "", ErrRefused, "the server refused the push: "},
		"no report":          {lines(t, "hello"), "", nil, "reading the answer to the push: "},
	} {
		for _, muxed := range []bool{true, false} {
			t.Run(fmt.Sprint(name, ", muxed ", muxed), func(t *testing.T) {
				r := &remote{auth: transport.Auth{Password: "hunter22"}}
				var answer bytes.Buffer
				if muxed {
					muxer := sideband.NewMuxer(sideband.Sideband64k, &answer)
					_, err := muxer.WriteChannel(sideband.ProgressMessage, []byte(tc.progress))
					if err == nil {
						_, err = muxer.Write(tc.report)
					}
					if err != nil {
						t.Fatal(err)
					}
					answer.WriteString("0000")
				} else {
					answer.Write(tc.report)
				}
				err := r.readReport(&answer, muxed)
				switch {
				case tc.is == nil && tc.says == "":
					if err != nil {
						t.Errorf("got %v", err)
					}
				case err == nil || tc.is != nil && !errors.Is(err, tc.is) || tc.is == nil && errors.Is(err, ErrRefused):
					t.Errorf("got %v, want %v", err, tc.is)
				case !strings.Contains(err.Error(), tc.says) && (muxed || tc.progress == ""):
					t.Errorf("got %v, want %s", err, tc.says)
				}
				if err != nil && strings.Contains(err.Error(), "hunter22") {
					t.Errorf("it has the password: %v", err)
				}
			})
		}
	}
}

func TestAnAnswerToAPushIsReadUpToALimit(t *testing.T) {
	names := func(n int) []byte {
		return lines(t, append([]string{"unpack ok"}, slices.Repeat([]string{"ok refs/heads/main"}, n)...)...)
	}
	if err := (&remote{}).readReport(bytes.NewReader(names(100)), false); err != nil {
		t.Errorf("a short one: %v", err)
	}
	if err := (&remote{}).readReport(bytes.NewReader(names(maxReport/20)), false); err == nil {
		t.Error("a long one is read to its end")
	}
}

func TestAPushNeedsAServerThatReportsTheStatus(t *testing.T) {
	command := &packp.Command{Name: "refs/heads/main", Old: plumbing.Hash{1}, New: plumbing.Hash{2}}
	for server, want := range map[string]string{
		"report-status": "report-status", "report-status side-band-64k": "report-status side-band-64k", "side-band-64k": "", "": "",
	} {
		request, muxed, err := pushRequest(capable(t, server), command)
		if want == "" {
			if !errors.Is(err, failure.ErrInvalid) || request != nil {
				t.Errorf("of a server with %q: %v", server, err)
			}
			continue
		}
		if err != nil || requested(request.Capabilities) != want || muxed != strings.Contains(want, "side-band") || len(request.Commands) != 1 || request.Commands[0] != command {
			t.Errorf("of a server with %q: %q, muxed %v, %v", server, requested(request.Capabilities), muxed, err)
		}
	}
}

func TestAFailedSSHConnectionIsExplained(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	timeout := &net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}
	const rejected, trouble = "h.example:22 rejected the key of the Secret", "connecting to h.example:22: "
	for name, tc := range map[string]struct {
		login login
		ctx   context.Context
		err   error
		is    error
		says  string
	}{
		"the end of the fetch":        {login{offered: true}, ended, errors.New("closed"), context.Canceled, ""},
		"an unknown host key":         {login{hostKey: errors.New("unknown")}, t.Context(), errors.New("unknown"), failure.ErrAuthentication, `the host key of h.example:22 is not in known_hosts: add the output of "ssh-keyscan h.example"`},
		"a rejected key":              {login{offered: true}, t.Context(), errors.New("no supported methods remain"), failure.ErrAuthentication, rejected},
		"no login":                    {login{}, t.Context(), errors.New("no common algorithm"), nil, trouble + "no common algorithm"},
		"an end after the key":        {login{offered: true}, t.Context(), fmt.Errorf("handshake: %w", io.EOF), io.EOF, trouble},
		"a connection that broke":     {login{offered: true}, t.Context(), fmt.Errorf("handshake: %w", timeout), timeout, trouble},
		"a connection that never was": {login{}, t.Context(), timeout, timeout, trouble},
	} {
		t.Run(name, func(t *testing.T) {
			err := tc.login.failed(tc.ctx, "h.example:22", tc.err)
			if tc.is != nil && !errors.Is(err, tc.is) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v, want %v, %s", err, tc.is, tc.says)
			}
			if tc.says == trouble && errors.Is(err, failure.ErrAuthentication) {
				t.Errorf("a network error is taken for a rejected key: %v", err)
			}
		})
	}
}

func TestPathsAreQuotedForAnSSHServer(t *testing.T) {
	for path, want := range map[string]string{"/a.git": "'/a.git'", "/a b": "'/a b'", "/a'b": `'/a'\''b'`, "/a!b": `'/a'\!'b'`, "/$(x)": "'/$(x)'"} {
		if got := shellQuote(path); got != want {
			t.Errorf("%s becomes %s, want %s", path, got, want)
		}
	}
}

func TestARefNamesTheCommitToFetch(t *testing.T) {
	refs := advertised(t, "", "HEAD", "refs/heads/main", "refs/tags/v1", "refs/pull/1/head", "refs/tags/light")
	refs.Peeled["refs/tags/v1"] = plumbing.Hash{9}
	hash := func(n byte) string { return plumbing.Hash{n}.String() }
	for name, tc := range map[string]struct {
		ref  sourcev1.GitRepositoryRef
		want target
	}{
		"a branch":             {sourcev1.GitRepositoryRef{Branch: "main"}, target{label: "main", commit: plumbing.Hash{2}, want: plumbing.Hash{2}}},
		"an annotated tag":     {sourcev1.GitRepositoryRef{Tag: "v1"}, target{label: "v1", commit: plumbing.Hash{9}, want: plumbing.Hash{3}, tag: "v1"}},
		"a lightweight tag":    {sourcev1.GitRepositoryRef{Tag: "light"}, target{label: "light", commit: plumbing.Hash{5}, want: plumbing.Hash{5}, tag: "light"}},
		"a name":               {sourcev1.GitRepositoryRef{Name: "refs/pull/1/head"}, target{label: "refs/pull/1/head", commit: plumbing.Hash{4}, want: plumbing.Hash{4}}},
		"a name before a tag":  {sourcev1.GitRepositoryRef{Name: "refs/heads/main", Tag: "v1", SemVer: "*"}, target{label: "refs/heads/main", commit: plumbing.Hash{2}, want: plumbing.Hash{2}}},
		"a tag and a branch":   {sourcev1.GitRepositoryRef{Tag: "v1", Branch: "main"}, target{label: "v1", commit: plumbing.Hash{9}, want: plumbing.Hash{3}, tag: "v1"}},
		"a commit of a branch": {sourcev1.GitRepositoryRef{Commit: hash(8), Branch: "main", Name: "x"}, target{label: "main", commit: plumbing.Hash{8}, want: plumbing.Hash{8}, unlisted: true, tips: []plumbing.Hash{{2}}}},
		"a commit":             {sourcev1.GitRepositoryRef{Commit: hash(8)}, target{commit: plumbing.Hash{8}, want: plumbing.Hash{8}, unlisted: true, tips: []plumbing.Hash{{2}, {3}, {5}}}},
		"a listed commit":      {sourcev1.GitRepositoryRef{Commit: hash(4), Branch: "main"}, target{label: "main", commit: plumbing.Hash{4}, want: plumbing.Hash{4}, tips: []plumbing.Hash{{2}}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := resolve(refs, &tc.ref)
			if err != nil {
				t.Fatal(err)
			}
			sort.Slice(got.tips, func(i, j int) bool { return got.tips[i].String() < got.tips[j].String() })
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(target{})); diff != "" {
				t.Error(diff)
			}
			want := tc.want.label + "@sha1:" + tc.want.commit.String()
			if revision := got.revision(); revision != strings.TrimPrefix(want, "@") {
				t.Errorf("the revision is %s", revision)
			}
			if !got.annotated().IsZero() {
				t.Error("a tag is required that nobody asked for")
			}
			got.withTag = true
			if tag := got.annotated(); tag.IsZero() == (name == "an annotated tag" || name == "a tag and a branch") || !tag.IsZero() && tag != (plumbing.Hash{3}) {
				t.Errorf("the annotated tag is %s", tag)
			}
		})
	}
}

func TestCommitsOfAStoreAreReadAsTheyWereWritten(t *testing.T) {
	dir := t.TempDir()
	if got := readCommits(dir); got != nil {
		t.Errorf("of no file: %v", got)
	}
	one, two := plumbing.NewHash(strings.Repeat("ab", 20)), plumbing.NewHash(strings.Repeat("cd", 20))
	for _, commits := range [][]plumbing.Hash{{one}, {one, two}, {two}} {
		if err := writeCommits(dir, commits); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(commits, readCommits(dir)); diff != "" {
			t.Error(diff)
		}
	}
	unfinished := filepath.Join(dir, "tmp-1")
	for path, text := range map[string]string{filepath.Join(dir, commitsFile): "no hash\n" + one.String() + "\n\nabcd\n  " + two.String() + "  ", unfinished: "x"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]plumbing.Hash{one, two}, readCommits(dir)); diff != "" {
		t.Error(diff)
	}
	sweep(dir)
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 || left[0].Name() != commitsFile {
		t.Errorf("left are %v, %v", left, err)
	}
	if err := writeCommits(filepath.Join(dir, "gone"), nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("into a missing folder: %v", err)
	}
}

func TestAnAuthorIsShownInOneShortLine(t *testing.T) {
	for name, tc := range map[string]struct{ name, email, want string }{
		"a name": {"Ann", "a@example.com", "Ann"}, "none": {"  ", "a@example.com", "a@example.com"}, "two lines": {"A\nB", "", "A B"},
		"a long one": {strings.Repeat("ä", maxAuthor+1), "", strings.Repeat("ä", maxAuthor-1) + "…"}, "the longest": {strings.Repeat("ä", maxAuthor), "", strings.Repeat("ä", maxAuthor)},
	} {
		if got := authorOf(&object.Commit{Author: object.Signature{Name: tc.name, Email: tc.email}}); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
