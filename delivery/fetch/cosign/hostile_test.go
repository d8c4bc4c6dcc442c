package cosign

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

// tagged is the tag under which cosign 2 looks for signatures.
var tagged = "sha256-" + signedDigest[7:] + ".sig"

// TestASignatureThatCannotBeReadHidesNoOther: anybody with the right to push could otherwise stop what is signed.
func TestASignatureThatCannotBeReadHidesNoOther(t *testing.T) {
	a := sources.NewSigner(t)
	right := sources.Payload(signedDigest)
	good, about := sources.Layer{Payload: right, Annotations: a.Annotations(right)}, a.Annotations(nil)
	long := map[string]string{"note": strings.Repeat("x", maxSignature)}
	maps.Copy(long, about)
	push := func(t *testing.T, s *sources.OCIServer, bad sources.Layer, with []sources.Layer) {
		s.PushPayloads(t, signedDigest, append([]sources.Layer{bad}, with...)...)
	}
	// with changes the manifest of what was pushed, whose first layer is to be damaged.
	with := func(old, now string) func(*testing.T, *sources.OCIServer, []sources.Layer) {
		return func(t *testing.T, s *sources.OCIServer, beside []sources.Layer) {
			push(t, s, sources.Layer{Payload: []byte("bad"), Annotations: about}, beside)
			changed := strings.Replace(string(s.Manifests[tagged]), old, now, 1)
			if changed == string(s.Manifests[tagged]) {
				t.Fatalf("%s has no %s", changed, old)
			}
			s.Manifests[tagged] = []byte(changed)
		}
	}
	of := sources.DigestOf([]byte("bad"))
	for name, c := range map[string]struct {
		bad  func(t *testing.T, s *sources.OCIServer, beside []sources.Layer)
		says string
	}{
		"a huge payload": {func(t *testing.T, s *sources.OCIServer, beside []sources.Layer) {
			push(t, s, sources.Layer{Payload: make([]byte, maxSignature+1), Annotations: about}, beside)
		}, "a signature of it is larger than the limit of 64 KiB"},
		"huge annotations": {func(t *testing.T, s *sources.OCIServer, beside []sources.Layer) {
			push(t, s, sources.Layer{Payload: []byte("{}"), Annotations: long}, beside)
		}, "what the manifest of its signatures says of one is larger than the limit of 64 KiB"},
		"no payload": {func(t *testing.T, s *sources.OCIServer, beside []sources.Layer) {
			push(t, s, sources.Layer{Payload: []byte("bad"), Annotations: about}, beside)
			delete(s.Blobs, of)
		}, "there is no signature at this URL"},
		"a damaged payload": {func(t *testing.T, s *sources.OCIServer, beside []sources.Layer) {
			push(t, s, sources.Layer{Payload: []byte("bad"), Annotations: about}, beside)
			s.Blobs[of] = []byte("BAD")
		}, "a signature of it is damaged in its registry"},
		"no digest": {with(of, "sha256:x"), "the manifest of its signatures names one without a digest"},
		"no layer": {func(t *testing.T, s *sources.OCIServer, beside []sources.Layer) {
			s.PushPayloads(t, signedDigest, beside...)
			s.Manifests[tagged] = []byte(strings.NewReplacer(`"layers":null`, `"layers":["x"]`, `"layers":[`, `"layers":["x",`).Replace(string(s.Manifests[tagged])))
		}, "the manifest of its signatures describes one as nobody does"},
		"a wrong field": {with(`"size":3}`, `"size":"x"}`), "the manifest of its signatures describes one as nobody does"},
	} {
		t.Run(name, func(t *testing.T) {
			server, v, image := registry(t)
			rules := []v1alpha1.SignatureRule{keyed(a)}
			c.bad(t, server, nil)
			sources.WantError(t, v.Verify(t.Context(), image, rules), failure.ErrSignature, c.says)
			c.bad(t, server, []sources.Layer{good})
			if err := v.Verify(t.Context(), image, rules); err != nil {
				t.Errorf("beside a good one: %v", err)
			}
			b := sources.NewSigner(t)
			sources.WantError(t, v.Verify(t.Context(), image, []v1alpha1.SignatureRule{keyed(b)}), failure.ErrSignature, "; another one cannot be read: "+c.says[:20])
			server.SignReferring(t, signedDigest, signPredicate, b)
			if err := v.Verify(t.Context(), image, []v1alpha1.SignatureRule{keyed(b)}); err != nil {
				t.Errorf("beside a good bundle: %v", err)
			}
		})
	}
}

// TestABundleThatCannotBeReadHidesNoOther, and neither does a list or a manifest.
func TestABundleThatCannotBeReadHidesNoOther(t *testing.T) {
	a := sources.NewSigner(t)
	index := "sha256-" + signedDigest[7:]
	for name, c := range map[string]struct {
		bad  func(t *testing.T, s *sources.OCIServer)
		says string
	}{
		"a huge bundle": {func(t *testing.T, s *sources.OCIServer) { s.PushBundle(t, signedDigest, make([]byte, maxSignature+1)) }, "a signature of it is larger than the limit of 64 KiB"},
		"garbage":       {func(t *testing.T, s *sources.OCIServer) { s.PushBundle(t, signedDigest, []byte("{")) }, "reading the bundle"},
		"no manifest": {func(t *testing.T, s *sources.OCIServer) {
			s.PushBundle(t, signedDigest, []byte("{"))
			maps.DeleteFunc(s.Manifests, func(at string, _ []byte) bool { return strings.HasPrefix(at, "sha256:") })
		}, "there is no sha256:"},
		"no bundle": {func(t *testing.T, s *sources.OCIServer) {
			s.PushBundle(t, signedDigest, []byte("{"))
			for at := range s.Manifests {
				if strings.HasPrefix(at, "sha256:") {
					s.Manifests[at] = []byte(`{"layers":[{"mediaType":"x"}]}`)
				}
			}
		}, "the manifest of its signatures is damaged"},
		"a huge list":           {func(_ *testing.T, s *sources.OCIServer) { s.Manifests[index] = make([]byte, maxList+1) }, "the list of its signatures is larger than the limit of 256 KiB"},
		"a huge manifest":       {func(_ *testing.T, s *sources.OCIServer) { s.Manifests[tagged] = make([]byte, maxManifest+1) }, "the manifest of its signatures is larger than the limit of 1 MiB"},
		"a manifest of nothing": {func(_ *testing.T, s *sources.OCIServer) { s.Manifests[tagged] = []byte("x") }, "the manifest of its signatures is not JSON"},
		"layers of nothing":     {func(_ *testing.T, s *sources.OCIServer) { s.Manifests[tagged] = []byte(`{"layers":{"a":{}}}`) }, "it has no signature in its registry"},
	} {
		t.Run(name, func(t *testing.T) {
			server, v, image := registry(t)
			rules := []v1alpha1.SignatureRule{keyed(a)}
			c.bad(t, server)
			sources.WantError(t, v.Verify(t.Context(), image, rules), failure.ErrSignature, c.says)
			bad := server.Manifests[index]
			server.SignReferring(t, signedDigest, signPredicate, a)
			if name == "a huge list" {
				server.Manifests[index] = bad
				server.SignTagged(t, signedDigest, a)
			} else {
				server.Manifests[index] = joined(t, bad, server.Manifests[index])
			}
			if err := v.Verify(t.Context(), image, rules); err != nil {
				t.Errorf("beside a good one: %v", err)
			}
		})
	}
}

// joined is an index with what two indexes have; the first may be missing.
func joined(t *testing.T, a, b []byte) []byte {
	t.Helper()
	if a == nil {
		return b
	}
	var first, second map[string]any
	if err := errors.Join(json.Unmarshal(a, &first), json.Unmarshal(b, &second)); err != nil {
		t.Fatal(err)
	}
	first["manifests"] = append(first["manifests"].([]any), second["manifests"].([]any)...)
	text, err := json.Marshal(first)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestASignatureThatIsNotServedIsNoVerdict: it may be the good one. Another good one counts without it.
func TestASignatureThatIsNotServedIsNoVerdict(t *testing.T) {
	a, b := sources.NewSigner(t), sources.NewSigner(t)
	payload, spaced := sources.Payload(signedDigest), append(sources.Payload(signedDigest), ' ')
	status := http.StatusServiceUnavailable
	server := sources.ServeOCI(t, func(served http.Handler) *httptest.Server {
		return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if strings.HasSuffix(req.URL.Path, sources.DigestOf(payload)) {
				w.WriteHeader(status)
				return
			}
			served.ServeHTTP(w, req)
		}))
	})
	_, v, image := registry(t)
	host := server.Listener.Addr().String()
	image.Name, v.plain = host+"/charts/web", append(v.plain, host)
	server.PushPayloads(t, signedDigest, sources.Layer{Payload: payload, Annotations: a.Annotations(payload)}, sources.Layer{Payload: spaced, Annotations: b.Annotations(spaced)})
	if err := v.Verify(t.Context(), image, []v1alpha1.SignatureRule{keyed(b)}); err != nil {
		t.Error(err)
	}
	sources.WantError(t, v.Verify(t.Context(), image, []v1alpha1.SignatureRule{keyed(a)}), failure.ErrServer, "answered 503")
	status = http.StatusForbidden
	sources.WantError(t, v.Verify(t.Context(), image, []v1alpha1.SignatureRule{keyed(a)}), failure.ErrAuthentication, "denies access")
}

// TestNoMoreIsCheckedWhenTheTimeIsOver: a rule may have many keys, and whoever pushes decides how many signatures there are.
func TestNoMoreIsCheckedWhenTheTimeIsOver(t *testing.T) {
	a := sources.NewSigner(t)
	payload := sources.Payload(signedDigest)
	s := search{digest: signedDigest, left: NewVerifier(nil, nil, nil).read([]v1alpha1.SignatureRule{keyed(a)})}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.take(ctx, ofPayload(payload, a.Annotations(payload))); !errors.Is(err, context.Canceled) || len(s.left) != 1 {
		t.Errorf("got %v; %d rules are left", err, len(s.left))
	}
	if err := s.take(t.Context(), ofPayload(payload, a.Annotations(payload))); err != nil || len(s.left) != 0 {
		t.Errorf("in time: got %v; %d rules are left", err, len(s.left))
	}
}

// TestKeysAreReadOnce for a verification, also if several rules have them, and a rule that names nobody is never satisfied.
func TestKeysAreReadOnce(t *testing.T) {
	a, b := sources.NewSigner(t), sources.NewSigner(t)
	read := NewVerifier(nil, nil, nil).read([]v1alpha1.SignatureRule{keyed(a, b), keyed(b), {}})
	if len(read[0].keys) != 2 || len(read[1].keys) != 1 || read[0].keys[1][0] != read[1].keys[0][0] || read[0].keys[0][0] == read[0].keys[1][0] {
		t.Errorf("got %v and %v", read[0].keys, read[1].keys)
	}
	if err := read[2].check(signedDigest, signature{}); err == nil {
		t.Error("a rule without keys and identities is satisfied")
	}
}

// TestAHostileManifestTakesLittleMemory: 24 verifications may run at the same time.
func TestAHostileManifestTakesLittleMemory(t *testing.T) {
	manifest := []byte(`{"layers":[` + strings.Repeat("{},", maxManifest/3-8) + `{}]}`)
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	layers, most := 0, uint64(0)
	for _, err := range layersOf(manifest) {
		if err != nil {
			t.Fatal(err)
		}
		if layers++; layers%50_000 == 0 {
			runtime.GC()
			runtime.ReadMemStats(&now)
			most = max(most, now.HeapAlloc-min(before.HeapAlloc, now.HeapAlloc))
		}
	}
	if t.Logf("%d layers, heap +%d KiB", layers, most/1024); layers < 300_000 || most > 8*maxManifest {
		t.Errorf("%d layers are held in %d bytes", layers, most)
	}
}
