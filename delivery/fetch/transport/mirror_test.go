package transport

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/prometheus/client_golang/prometheus/testutil"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

// mirrored is a registry with a mirror, each with a tag of its own and the tag both.
type mirrored struct {
	*Registry
	host, mirror *sources.OCIServer
	clock        *clocktesting.FakePassiveClock
	network      *Network
	access       Access
}

func newMirrored(t *testing.T) *mirrored {
	m := &mirrored{host: sources.ServeOCI(t, httptest.NewServer), mirror: sources.ServeOCI(t, httptest.NewServer), clock: clocktesting.NewFakePassiveClock(time.Now())}
	for of, server := range map[string]*sources.OCIServer{"host": m.host, "mirror": m.mirror} {
		server.PushArtifact(t, of, "application/tar+gzip", []byte(of))
		server.PushArtifact(t, "both", "application/tar+gzip", []byte(of))
	}
	m.network = &Network{Allowed: loopback.Allowed, Clock: m.clock}
	m.access = Access{Insecure: true, Mirror: &Mirror{At: m.mirror.Listener.Addr().String(), Tenant: "acme", Access: Access{Insecure: true}}}
	m.open(t)
	return m
}

// open opens the registry, as each fetch does.
func (m *mirrored) open(t *testing.T) {
	t.Helper()
	r, err := OpenRegistry(m.network, m.host.Listener.Addr().String()+"/charts/web", m.access)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	m.Registry = r
}

// read returns the manifest of a tag.
func (m *mirrored) read(t *testing.T, tag string) (manifest string, err error) {
	t.Helper()
	_, body, err := m.FetchReference(t.Context(), tag)
	if err != nil {
		return "", m.Failed(err, "artifact")
	}
	defer body.Close()
	raw, err := io.ReadAll(body)
	return string(raw), err
}

// layer returns the layer of the mirror's manifest of a tag.
func (m *mirrored) layer(t *testing.T, tag string) ocispec.Descriptor {
	t.Helper()
	var manifest ocispec.Manifest
	if err := json.Unmarshal(m.mirror.Manifests[tag], &manifest); err != nil {
		t.Fatal(err)
	}
	return manifest.Layers[0]
}

// from names the registry that has a manifest.
func (m *mirrored) from(manifest string) string {
	for of, server := range map[string]*sources.OCIServer{"host": m.host, "mirror": m.mirror} {
		for _, is := range server.Manifests {
			if string(is) == manifest {
				return of
			}
		}
	}
	return ""
}

func TestAMirrorIsAskedFirst(t *testing.T) {
	m := newMirrored(t)
	for tag, want := range map[string]string{"both": "mirror", "mirror": "mirror", "host": "host"} {
		manifest, err := m.read(t, tag)
		if got := m.from(manifest); err != nil || got != want {
			t.Errorf("tag %s comes from %q (%v), want %s", tag, got, err, want)
		}
		about, err := m.Resolve(t.Context(), tag)
		if err != nil || about.Digest.String() != sources.DigestOf([]byte(manifest)) {
			t.Errorf("tag %s resolves to %v (%v)", tag, about.Digest, err)
		}
	}
	_, err := m.read(t, "none")
	sources.WantError(t, err, failure.ErrNotFound, "there is no artifact at this URL")
	sources.WantError(t, err, failure.ErrNotFound, "; its mirror "+m.access.Mirror.At+" was asked first: there is no it at this URL")
}

func TestTagsAndBlobsComeFromAMirror(t *testing.T) {
	m := newMirrored(t)
	layer := m.layer(t, "both")
	blob := func() string {
		body, err := m.Blob(t.Context(), layer)
		if err != nil {
			return m.Failed(err, "layer").Error()
		}
		defer body.Close()
		read, err := io.ReadAll(body)
		return fmt.Sprint(string(read), err)
	}
	if got := blob(); got != "mirror<nil>" {
		t.Errorf("the blob is %q", got)
	}
	var tags []string
	if err := m.Tags(t.Context(), "", func(page []string) error { tags = append(tags, page...); return nil }); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(tags, " "); !strings.Contains(got, "mirror") || strings.Contains(got, "host") {
		t.Errorf("the tags are %s", got)
	}
	many := errors.New("too many tags")
	if err := m.Tags(t.Context(), "", func([]string) error { return many }); !errors.Is(err, many) {
		t.Errorf("the error of who reads the tags is lost: %v", err)
	}
	for digest, content := range m.mirror.Blobs {
		m.host.Blobs[digest] = content
	}
	clear(m.mirror.Blobs)
	m.host.Requests()
	if got := blob(); got != "mirror<nil>" || len(m.host.Requests()) != 1 {
		t.Errorf("a blob that only the host has is %q", got)
	}
}

// TestAMirrorServesWhatADeadHostCannot, below the path of the mirror. If it lacks something, the message names both.
func TestAMirrorServesWhatADeadHostCannot(t *testing.T) {
	m := newMirrored(t)
	m.access.Mirror.At += "/charts"
	r, err := OpenRegistry(m.network, closedPort(t)+"/web", m.access)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := r.Resolve(t.Context(), "both"); err != nil {
		t.Error(err)
	}
	_, err = r.Resolve(t.Context(), "none")
	err = r.Failed(err, "artifact")
	sources.WantError(t, err, failure.ErrUnavailable, "gives no answer: ")
	sources.WantError(t, err, failure.ErrUnavailable, m.mirror.Listener.Addr().String()+" was asked first: there is no")
}

// TestAMirrorThatDoesNotAnswerIsPassedOver for a minute, for the tenant who asked it.
func TestAMirrorThatDoesNotAnswerIsPassedOver(t *testing.T) {
	m := newMirrored(t)
	skipped := testutil.ToFloat64(mirrorRequests.WithLabelValues("skipped"))
	m.access.Mirror.At = closedPort(t)
	m.open(t)
	for range 3 {
		if manifest, err := m.read(t, "both"); err != nil || m.from(manifest) != "host" {
			t.Errorf("the manifest comes from %q: %v", m.from(manifest), err)
		}
	}
	if got := testutil.ToFloat64(mirrorRequests.WithLabelValues("skipped")) - skipped; got != 2 {
		t.Errorf("the mirror was passed over %v times, want 2", got)
	}
	other := *m.access.Mirror
	other.Tenant = "globex"
	for who, mirror := range map[string]*Mirror{"the same tenant": m.access.Mirror, "another tenant": &other} {
		m.access.Mirror = mirror
		m.open(t)
		if got, want := m.Registry.mirror.skip(), who == "the same tenant"; got != want {
			t.Errorf("%s: passed over is %v", who, got)
		}
	}
	m.clock.SetTime(m.clock.Now().Add(mirrorRest))
	if m.Registry.mirror.skip() {
		t.Error("after a minute, the mirror is still passed over")
	}
}

// TestAMirrorThatRefusesIsNotPassedOver: a tenant may have it answer with errors.
func TestAMirrorThatRefusesIsNotPassedOver(t *testing.T) {
	for _, status := range []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests, http.StatusBadGateway} {
		m := newMirrored(t)
		var asked atomic.Int32
		refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			asked.Add(1)
			w.WriteHeader(status)
		}))
		t.Cleanup(refusing.Close)
		m.access.Mirror.At = refusing.Listener.Addr().String()
		m.open(t)
		for range 2 {
			if manifest, err := m.read(t, "both"); err != nil || m.from(manifest) != "host" {
				t.Errorf("%d: the manifest comes from %q: %v", status, m.from(manifest), err)
			}
		}
		if asked.Load() < 2 {
			t.Errorf("%d: the mirror was asked %d times: %v", status, asked.Load(), m.Registry.mirror.failed)
		}
	}
}

// TestAMirrorThatHangsCostsItsOwnTimeOnly, not that of the fetch.
func TestAMirrorThatHangsCostsItsOwnTimeOnly(t *testing.T) {
	hanging := httptest.NewServer(sources.Hang("", ""))
	t.Cleanup(hanging.CloseClientConnections)
	m := newMirrored(t)
	m.access.Mirror.At = hanging.Listener.Addr().String()
	m.open(t)
	manifest, err := Within(t.Context(), DefaultTimeouts(), func(context.Context) (string, error) { return m.read(t, "both") })
	if err != nil || m.from(manifest) != "host" {
		t.Errorf("the manifest comes from %q: %v", m.from(manifest), err)
	}
	sources.WantError(t, m.Registry.mirror.failed, failure.ErrSlow, "the limit of 5s")
	if !m.Registry.mirror.skip() {
		t.Error("a mirror that hangs is asked again")
	}
}

// TestAMirrorThatStopsSendingIsPassedOver by the next fetch.
func TestAMirrorThatStopsSendingIsPassedOver(t *testing.T) {
	m := newMirrored(t)
	broken := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = w.Write([]byte("begin"))
	}))
	t.Cleanup(broken.Close)
	layer := m.layer(t, "both")
	m.access.Mirror.At = broken.Listener.Addr().String()
	m.open(t)
	layer.Size = 100
	body, err := m.Blob(t.Context(), layer)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.ReadAll(body)
	sources.WantError(t, err, failure.ErrUnavailable, "the mirror "+m.access.Mirror.At+" stopped sending: unexpected EOF")
	_ = body.Close()
	if !m.Registry.mirror.skip() {
		t.Error("the next fetch asks it again")
	}
}

// TestEachRegistryGetsItsOwnCredentials also where one is the mirror of the other.
func TestEachRegistryGetsItsOwnCredentials(t *testing.T) {
	m := newMirrored(t)
	var users [2]atomic.Value
	for i, server := range []*sources.OCIServer{m.host, m.mirror} {
		server.Challenge = `Basic realm="registry"`
		server.Allow = func(req *http.Request) bool {
			user, _, with := req.BasicAuth()
			if with {
				users[i].Store(user)
			}
			return with
		}
	}
	m.access.Auth = Auth{Username: "of-host", Password: "hunter2"}
	m.access.Mirror.Access.Auth = Auth{Username: "of-mirror", Password: "hunter3"}
	m.open(t)
	if _, err := m.read(t, "host"); err != nil {
		t.Fatal(err)
	}
	if users[0].Load() != "of-host" || users[1].Load() != "of-mirror" {
		t.Errorf("the host got %v, the mirror %v", users[0].Load(), users[1].Load())
	}
}

func closedPort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}
