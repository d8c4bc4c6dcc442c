package kube

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// look is one look at a kind, which must not wait.
func (o *operator) look(t *testing.T, kind schema.GroupVersionKind) error {
	t.Helper()
	began := time.Now()
	_, _, err := o.Watch.Live(t.Context(), kind, types.NamespacedName{Namespace: "default", Name: "any"})
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("a look took %s", took)
	}
	return err
}

func TestNoLookWaitsForAFirstList(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	if _, err := o.mapper.RESTMapping(configMaps.GroupKind(), configMaps.Version); err != nil { // Discovery is another matter.
		t.Fatal(err)
	}
	o.silent.Store(true)
	err := o.look(t, configMaps)
	var unready *Unready
	if !errors.As(err, &unready) || unready.Err != nil || !strings.Contains(err.Error(), "watching ConfigMap: the first list has not arrived yet") {
		t.Fatalf("got %v", err)
	}
	woken := make(chan struct{})
	unready.Wake("app", func() { close(woken) })
	select {
	case <-woken:
		t.Fatal("woken before there is a list")
	case <-time.After(200 * time.Millisecond):
	}
	o.silent.Store(false)
	o.cut() // The request is sent again.
	select {
	case <-woken:
	case <-time.After(60 * time.Second):
		t.Fatal("Wake is not called when the list is there")
	}
	if err := o.look(t, configMaps); err != nil {
		t.Errorf("when the list is there: %v", err)
	}
}

// TestAKindThatCannotBeListed has the API server answer lists of a kind with an error, and later not.
func TestAKindThatCannotBeListed(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	o.answer("/api/v1/configmaps", http.StatusInternalServerError, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":500,"reason":"InternalError",
		"message":"conversion webhook for example.com/v1, Kind=Widget failed"}`)
	var observed error
	eventually(t, "the error is returned", func() bool {
		observed = o.look(t, configMaps)
		var unready *Unready
		return errors.As(observed, &unready) && unready.Unlisted()
	})
	if !apierrors.IsInternalError(observed) || !strings.Contains(observed.Error(), "watching ConfigMap: the API server does not list it: ") ||
		!strings.Contains(observed.Error(), "conversion webhook for example.com/v1, Kind=Widget failed") {
		t.Errorf("got %v", observed)
	}
	var unready *Unready
	errors.As(observed, &unready)
	woken := make(chan struct{})
	unready.Wake("app", func() { close(woken) })
	o.answer("", 0, "")
	select {
	case <-woken:
	case <-time.After(60 * time.Second):
		t.Fatal("Wake is not called when the list is there")
	}
	if err := o.look(t, configMaps); err != nil {
		t.Errorf("when the list is there: %v", err)
	}
}

// An API server that is unavailable for a while is no failure of a kind.
func TestAnAPIServerThatIsAwayIsNoFailureOfAKind(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	o.answer("/api/v1/configmaps", http.StatusServiceUnavailable, "away")
	for range 10 {
		err := o.look(t, configMaps)
		var unready *Unready
		if !errors.As(err, &unready) || unready.Err != nil {
			t.Fatalf("got %v", err)
		}
		time.Sleep(100 * time.Millisecond)
	}
	o.answer("", 0, "")
	if err := o.Follow(t.Context(), configMaps); err != nil {
		t.Error(err)
	}
}

func TestTheLabelOfANamespaceNamesItsTenant(t *testing.T) {
	t.Parallel()
	o, name := newOperator(t), project(t)
	if got := o.TenantOf(name); got != "" {
		t.Errorf("before namespaces are watched: %q, want none", got)
	}
	patch := []byte(`{"metadata":{"labels":{"paas.kubeop.io/tenant":"acme"}}}`)
	if _, err := admin(t).CoreV1().Namespaces().Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	o.Begin(namespaceKind)
	eventually(t, "its tenant is known", func() bool { return o.TenantOf(name) == "acme" })
	if got := o.TenantOf("default"); got != "" {
		t.Errorf("a namespace that is nobody's is of %q, want none", got)
	}
}

// answered is a response with a body.
func answered(r *http.Request, code int, body string) *http.Response {
	return &http.Response{
		StatusCode: code, Status: http.StatusText(code), Request: r, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)),
	}
}
