package artifact

import (
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"path"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

func TestDownloadSendsNoCredentialsAndChecksTheDigest(t *testing.T) {
	archive := sources.TarGz(t, sources.Entry{Name: "web.yaml", Text: "kind: Service"})
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		asked.Add(1)
		switch {
		case req.Header.Get("Authorization") != "":
			t.Error("credentials were sent")
		case req.URL.Path == "/bucket/shop/away":
			http.Redirect(w, req, "http://127.0.0.2/", http.StatusFound)
		case path.Base(req.URL.Path) != "a.tar.gz":
			http.NotFound(w, req)
		default:
			_, _ = w.Write(archive)
		}
	}))
	defer server.Close()
	store := NewStore(t.TempDir(), loopback, "127.0.0.1")
	src := Flux{URL: server.URL + "/bucket/shop/web/a.tar.gz", Revision: "main@sha1:abc", Digest: sources.DigestOf(archive), Namespace: "shop", Tenant: "acme"}
	for range 3 {
		got, err := store.Download(t.Context(), src)
		if err != nil || got.Revision != "main@sha1:abc" {
			t.Fatal(got, err)
		}
		if text, err := fs.ReadFile(filesOf(t, store, got), "web.yaml"); err != nil || string(text) != "kind: Service" {
			t.Errorf("got %q, %v", text, err)
		}
	}
	if asked.Load() != 1 {
		t.Errorf("asked %d times, want 1", asked.Load())
	}
	right := sources.DigestOf(archive)
	wrong := "sha256:" + strings.Repeat("0", 64)
	for name, tc := range map[string]struct {
		url, digest string
		kind        error
		says        string
	}{
		"another host":   {"http://source-controller.flux-system.svc.evil.example/a", wrong, failure.ErrInvalid, "fluxArtifactHosts of the values of kubeop's chart"},
		"another scheme": {"file:///etc/passwd", wrong, failure.ErrInvalid, "http://host/path"},
		"a user":         {"http://u:hunter2@127.0.0.1/a", wrong, failure.ErrInvalid, "http://host/path"},
		"no digest":      {src.URL, "", failure.ErrInvalid, "digest"},
		"a path":         {src.URL, "../../etc/passwd", failure.ErrInvalid, "digest"},
		"another digest": {src.URL, wrong, failure.ErrUnavailable, "is expected"},
		"of others":      {server.URL + "/bucket/bank/web/a.tar.gz", right, failure.ErrInvalid, "namespace shop"},
		"round others":   {server.URL + "/bucket/shop/../bank/web/a.tar.gz", right, failure.ErrInvalid, "namespace shop"},
		"encoded":        {server.URL + "/bucket/shop/%2e%2e/bank/web/a.tar.gz", right, failure.ErrInvalid, "namespace shop"},
		"a short path":   {server.URL + "/shop", right, failure.ErrInvalid, "namespace shop"},
		"a redirect":     {server.URL + "/bucket/shop/away", wrong, failure.ErrInvalid, "redirects"},
		"not there":      {server.URL + "/bucket/shop/none", wrong, failure.ErrNotFound, "404"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			_, err := NewStore(dir, loopback, "127.0.0.1").Download(t.Context(), Flux{URL: tc.url, Digest: tc.digest, Namespace: "shop"})
			if !errors.Is(err, tc.kind) || !strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), "hunter2") ||
				tc.digest != right && strings.Contains(err.Error(), right) {
				t.Errorf("got %v", err)
			}
			if left, _ := filepath.Glob(filepath.Join(dir, "*", "*")); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

func TestAPatternOfHostsMatchesOneLabel(t *testing.T) {
	for host, want := range map[string]bool{
		"source-controller.flux-system.svc": true, "source-controller.x.svc": true, "source-controller..svc": false, "source-controller.svc": false,
		"source-controller.a.b.svc": false, "evil.flux-system.svc": false, "source-controller.flux-system.svc.evil.example": false, "x.source-controller.a.svc": false,
	} {
		if got := matchesHost("source-controller.*.svc", host); got != want {
			t.Errorf("%s: %t, want %t", host, got, want)
		}
	}
}
