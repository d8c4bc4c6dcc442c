package kube

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

// patient is a LocalWatch whose looks wait for the first list, as no Reconcile does.
type patient struct{ *LocalWatch }

// newLocal returns a LocalWatch over a line, and what it logs.
func newLocal(t *testing.T) (patient, *line, *text) {
	t.Helper()
	l, log := newLine(t), &text{}
	return patient{NewLocalWatch(env.Config, l.client, log.logger(), clock.RealClock{})}, l, log
}

func (p patient) Records(ctx context.Context, namespace, release string) (records []metav1.PartialObjectMetadata, err error) {
	err = Await(ctx, func() error {
		records, err = p.LocalWatch.Records(ctx, namespace, release)
		return err
	})
	return records, err
}

func (p patient) Version(ctx context.Context, namespace, kind, name string) (version string, err error) {
	err = Await(ctx, func() error {
		version, err = p.LocalWatch.Version(ctx, namespace, kind, name)
		return err
	})
	return version, err
}

// changes collects what a LocalWatch reports.
type changes struct {
	mu    sync.Mutex
	calls []string
}

func listen(w patient) *changes {
	h := &changes{}
	w.OnChange(func(_, kind, name string, labels map[string]string) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.calls = append(h.calls, strings.TrimSpace(kind+"/"+name+" "+labels["paas.kubeop.io/app"]))
	})
	return h
}

func (h *changes) all() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.calls)
}

func TestARefusedNamespaceIsReportedAtOnceAndRecovers(t *testing.T) {
	t.Parallel()
	namespace := project(t)
	revoke(t, namespace)
	w, l, log := newLocal(t)
	defer w.Forget(namespace)
	eventually(t, "the API server refuses the deployer", func() bool {
		_, err := w.Records(t.Context(), namespace, "web")
		w.Forget(namespace)
		return err != nil
	})

	_, err := w.Records(t.Context(), namespace, "web")
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "Secrets of namespace "+namespace) {
		t.Fatalf("got %v", err)
	}
	before := l.requests.Load()
	for range 100 {
		if _, err := w.Records(t.Context(), namespace, "web"); !apierrors.IsForbidden(err) {
			t.Fatalf("got %v", err)
		}
	}
	if made := l.requests.Load() - before; made > 4 {
		t.Errorf("100 looks at a namespace that is refused made %d requests", made)
	}
	grant(t, namespace)
	eventually(t, "the watch comes about", func() bool {
		_, err := w.Records(t.Context(), namespace, "web")
		return err == nil
	})
	if log.String() != "" {
		t.Errorf("logged what the callers got as an error:\n%s", log)
	}
}

func TestAWatchWithoutRightsAsksSeldom(t *testing.T) {
	t.Parallel()
	namespace := project(t)
	secret(t, namespace, "sh.helm.release.v1.web.v1", "owner", "helm", "name", "web")
	w, l, log := newLocal(t)
	defer w.Forget(namespace)
	h := listen(w)
	if _, err := w.Records(t.Context(), namespace, "web"); err != nil {
		t.Fatal(err)
	}
	revoke(t, namespace)
	eventually(t, "the API server refuses the watch", func() bool { // once it knows, and the watch has to begin anew
		l.cut()
		time.Sleep(100 * time.Millisecond)
		return log.String() != ""
	})
	before := l.requests.Load()
	time.Sleep(3 * time.Second)
	if made := l.requests.Load() - before; made > 12 {
		t.Errorf("asked %d times in 3s for what it is refused", made)
	}
	records, err := w.Records(t.Context(), namespace, "web")
	if err != nil || len(records) != 1 {
		t.Errorf("got %v, %v; what was seen last is to stand", records, err)
	}
	if lines := strings.Count(log.String(), "\n"); lines != 1 {
		t.Errorf("logged %d lines:\n%s", lines, log)
	}

	secret(t, namespace, "sh.helm.release.v1.web.v2", "owner", "helm", "name", "web", "paas.kubeop.io/app", "shop")
	grant(t, namespace)
	eventually(t, "what happened meanwhile is reported", func() bool { return len(h.all()) == 1 })
	if diff := cmp.Diff([]string{"Secret/sh.helm.release.v1.web.v2 shop"}, h.all()); diff != "" {
		t.Error(diff)
	}
}

// TestLostRightsAreLoggedOnce passes a watch the results of its requests. Each time that the API server begins to refuse what it allowed, one
// line is logged, however often requests fail for other reasons meanwhile.
func TestLostRightsAreLoggedOnce(t *testing.T) {
	t.Parallel()
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "", errors.New("no binding"))
	unauthorized, cut := apierrors.NewUnauthorized("unknown"), errors.New("connection reset")
	for name, c := range map[string]struct {
		before, results []error // before and after the first list
		lines           int
	}{
		"no failure":                           {nil, []error{nil, nil}, 0},
		"an interrupted connection":            {nil, []error{cut, nil, cut}, 0},
		"refused":                              {nil, []error{nil, forbidden, forbidden}, 1},
		"the deployer is unknown":              {nil, []error{unauthorized, forbidden}, 1},
		"an interrupted connection meanwhile":  {nil, []error{forbidden, cut, forbidden, cut, cut, forbidden}, 1},
		"refused after the rights were back":   {nil, []error{forbidden, nil, forbidden}, 2},
		"refused before the first list only":   {[]error{forbidden, forbidden, nil}, []error{nil}, 0},
		"refused before the first list and on": {[]error{forbidden, nil}, []error{forbidden}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			log := &text{}
			w := &localWatch{rows: newRows(nil), firstList: newFirstList("Secrets", time.Time{}), log: log.logger()}
			for _, err := range c.before {
				w.note(err)
			}
			close(w.synced)
			for _, err := range c.results {
				w.note(err)
			}
			if got := strings.Count(log.String(), "\n"); got != c.lines {
				t.Errorf("logged %d lines, want %d:\n%s", got, c.lines, log)
			}
		})
	}
}

// TestAFirstListThatIsRefusedForLongFails: the first refusals are those of rights that are about to take effect.
func TestAFirstListThatIsRefusedForLongFails(t *testing.T) {
	t.Parallel()
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "", errors.New("no binding"))
	w := &localWatch{rows: newRows(nil), firstList: newFirstList("Secrets", time.Time{}), log: (&text{}).logger()}
	for n := 1; n <= refusals; n++ {
		w.note(forbidden)
		w.note(nil) // Not an arrived list: of a list that is sent as a watch, this is the beginning.
		if failed := w.unready().Unlisted(); failed != (n == refusals) {
			t.Errorf("after %d refusals of %d, the list has failed: %t", n, refusals, failed)
		}
	}
}

func TestAnAPIServerThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	w, l, _ := newLocal(t)
	defer w.Forget("kubeop-acme-dev")
	l.silent.Store(true)
	look := func() *Unready {
		t.Helper()
		began := time.Now()
		_, err := w.LocalWatch.Version(t.Context(), "kubeop-acme-dev", "ConfigMap", "values")
		var unready *Unready
		if !errors.As(err, &unready) || unready.Err != nil || !strings.Contains(err.Error(), "kubeop-acme-dev") {
			t.Fatalf("got %v", err)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("a look took %s", took)
		}
		return unready
	}
	woken := make(chan struct{})
	look().Wake("it", func() { t.Error("one of two of the same key was woken") })
	look().Wake("it", func() { close(woken) })
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := w.Version(ctx, "kubeop-acme-dev", "ConfigMap", "values"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the caller's own deadline: got %v", err)
	}
	last := look()
	w.Forget("kubeop-acme-dev")
	<-woken
	woken = make(chan struct{})
	last.Wake("late", func() { close(woken) })
	<-woken
}

func TestAForgottenNamespaceNeedsNoRequest(t *testing.T) {
	t.Parallel()
	namespace := project(t)
	secret(t, namespace, "sh.helm.release.v1.web.v1", "owner", "helm", "name", "web", "paas.kubeop.io/app", "shop")
	w, l, log := newLocal(t)
	h := listen(w)
	if _, err := w.Records(t.Context(), namespace, "web"); err != nil {
		t.Fatal(err)
	}
	if err := admin(t).CoreV1().Namespaces().Delete(t.Context(), namespace, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the deletion of the Secret is reported", func() bool { return slices.Contains(h.all(), "Secret/sh.helm.release.v1.web.v1 shop") })
	if records, err := w.Records(t.Context(), namespace, "web"); err != nil || len(records) != 0 {
		t.Errorf("got %v, %v", records, err)
	}
	w.Forget(namespace)
	before := l.requests.Load()
	l.cut()
	time.Sleep(time.Second)
	if made := l.requests.Load() - before; made != 0 || log.String() != "" {
		t.Errorf("after Forget: %d requests, log %q", made, log)
	}
}

func TestForgetLeavesNothingBehind(t *testing.T) {
	w, _, _ := newLocal(t)
	namespaces := make([]string, 5)
	for i := range namespaces {
		namespaces[i] = project(t)
	}
	look := func() {
		for _, namespace := range namespaces {
			for _, kind := range []string{"Secret", "ConfigMap"} {
				if _, err := w.Version(t.Context(), namespace, kind, "any"); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	look() // opens the connection
	for _, namespace := range namespaces {
		w.Forget(namespace)
	}
	time.Sleep(time.Second)
	before := runtime.NumGoroutine()
	look()
	if runtime.NumGoroutine() < before+10 {
		t.Fatal("the test sees no goroutines of ten watches")
	}
	for _, namespace := range namespaces {
		w.Forget(namespace)
	}
	eventually(t, "no goroutine is left", func() bool { return runtime.NumGoroutine() <= before })

	look()
	ctx, end := context.WithCancel(t.Context())
	end()
	if err := w.Start(ctx); err != nil {
		t.Fatal(err)
	}
	eventually(t, "no goroutine is left at the end", func() bool { return runtime.NumGoroutine() <= before })
	if _, err := w.Version(t.Context(), namespaces[0], "Secret", "any"); err == nil {
		t.Error("begins a watch after its end")
	}
}

func TestTheLastVersionIsKnownAfterABurst(t *testing.T) {
	t.Parallel()
	namespace := project(t)
	secret(t, namespace, "values")
	w, _, _ := newLocal(t)
	defer w.Forget(namespace)
	h := listen(w)
	if _, err := w.Version(t.Context(), namespace, "Secret", "values"); err != nil {
		t.Fatal(err)
	}
	last := ""
	for i := range 100 {
		patch := fmt.Appendf(nil, `{"stringData":{"n":"%d"}}`, i)
		s, err := admin(t).CoreV1().Secrets(namespace).Patch(t.Context(), "values", types.MergePatchType, patch, metav1.PatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
		last = s.ResourceVersion
	}
	eventually(t, "the last version is known", func() bool {
		version, err := w.Version(t.Context(), namespace, "Secret", "values")
		return err == nil && version == last
	})
	eventually(t, "each change is reported", func() bool { return len(h.all()) == 100 })
}

func TestALocalWatchShowsTheChangesOfItsNamespace(t *testing.T) {
	t.Parallel()
	namespace := project(t)
	secret(t, namespace, "sh.helm.release.v1.web.v1", "owner", "helm", "name", "web", "version", "1", "paas.kubeop.io/app", "shop")
	secret(t, namespace, "sh.helm.release.v1.web.v2", "owner", "helm", "name", "web", "version", "2", "paas.kubeop.io/app", "shop")
	secret(t, namespace, "sh.helm.release.v1.db.v1", "owner", "helm", "name", "db", "paas.kubeop.io/app", "shop")
	secret(t, namespace, "sh.helm.release.v1.old.v1", "owner", "helm", "name", "old")
	secret(t, namespace, "mine", "owner", "me", "name", "web", "paas.kubeop.io/app", "shop")
	w, l, _ := newLocal(t)
	defer w.Forget(namespace)
	h := listen(w)

	records, err := w.Records(t.Context(), namespace, "web")
	if err != nil {
		t.Fatal(err)
	}
	live, err := admin(t).CoreV1().Secrets(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "owner=helm,name=web"})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]metav1.ObjectMeta{}
	for _, s := range live.Items {
		want[s.Name] = metav1.ObjectMeta{
			Name: s.Name, Namespace: s.Namespace, UID: s.UID, ResourceVersion: s.ResourceVersion, Labels: s.Labels, CreationTimestamp: s.CreationTimestamp,
		}
	}
	got := map[string]metav1.ObjectMeta{}
	for _, r := range records {
		got[r.Name] = r.ObjectMeta
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for app, want := range map[string][]string{"shop": {"db", "web"}, "": {"old"}, "none": nil} {
		if got, err := w.Releases(t.Context(), namespace, app); err != nil || !slices.Equal(got, want) {
			t.Errorf("releases of app %q: %v, %v", app, got, err)
		}
	}
	if l.requests.Load() != 1 {
		t.Errorf("%d requests; ConfigMaps are not to be watched unasked", l.requests.Load())
	}
	if _, err := w.Version(t.Context(), namespace, "Pod", "x"); err == nil {
		t.Error("watches Pods")
	}
	if version, err := w.Version(t.Context(), namespace, "ConfigMap", "none"); version != "" || err != nil {
		t.Errorf("got %q, %v", version, err)
	}
	if calls := h.all(); len(calls) > 1 { // kube-root-ca.crt may come late
		t.Errorf("reported what was there: %v", calls)
	}
}

func TestAChangeOfOwnerIsReportedToBoth(t *testing.T) {
	t.Parallel()
	namespace := project(t)
	w, _, _ := newLocal(t)
	defer w.Forget(namespace)
	h := listen(w)
	if _, err := w.Records(t.Context(), namespace, "web"); err != nil {
		t.Fatal(err)
	}
	name := "sh.helm.release.v1.web.v1"
	secret(t, namespace, name, "owner", "helm", "name", "web", "paas.kubeop.io/app", "shop")
	patch := []byte(`{"metadata":{"labels":{"paas.kubeop.io/app":"store"}}}`)
	if _, err := admin(t).CoreV1().Secrets(namespace).Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := admin(t).CoreV1().Secrets(namespace).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	want := []string{"Secret/" + name + " shop", "Secret/" + name + " shop", "Secret/" + name + " store", "Secret/" + name + " store"}
	eventually(t, "all changes are reported", func() bool { return len(h.all()) >= len(want) })
	if diff := cmp.Diff(want, h.all()); diff != "" {
		t.Error(diff)
	}
	for _, app := range []string{"shop", "store"} {
		if got, err := w.Releases(t.Context(), namespace, app); err != nil || len(got) != 0 {
			t.Errorf("releases of %s: %v, %v", app, got, err)
		}
	}
}

// TestARecordTakesLittleMemory: at most 800 bytes, because an app keeps up to ten.
func TestARecordTakesLittleMemory(t *testing.T) {
	const count = 2500
	namespace := project(t)
	var all sync.WaitGroup
	for part := range 8 {
		all.Go(func() {
			for i := part; i < count; i += 8 {
				secret(t, namespace, fmt.Sprintf("sh.helm.release.v1.shop-%d.v%d", i/10, i%10),
					"owner", "helm", "name", fmt.Sprintf("shop-%d", i/10), "status", "superseded", "version", fmt.Sprint(i%10),
					"createdAt", "1795183000", "modifiedAt", "1795183009", "paas.kubeop.io/app", fmt.Sprintf("shop-%d", i/10),
					"paas.kubeop.io/digest", "9f86d081884c7d65", "paas.kubeop.io/holder", "8d3d2ab4-2f5c-44f7-9a4e-2f4f5e3a9b0c",
					"paas.kubeop.io/attempt", "1", "paas.kubeop.io/release-revision", fmt.Sprint(i%10),
					"paas.kubeop.io/tenant", "acme", "paas.kubeop.io/project", "dev")
			}
		})
	}
	all.Wait()
	w, _, _ := newLocal(t)
	if _, err := w.Version(t.Context(), namespace, "ConfigMap", ""); err != nil { // opens the connection
		t.Fatal(err)
	}
	defer w.Forget(namespace)
	before := heap()
	began := time.Now()
	if records, err := w.Records(t.Context(), namespace, "shop-7"); err != nil || len(records) != 10 {
		t.Fatalf("got %d records, %v", len(records), err)
	}
	took := time.Since(began)
	each := (heap() - before) / count
	t.Logf("%d bytes for each of %d records; the first list took %s", each, count, took)
	if each > 800 {
		t.Errorf("%d bytes for each record", each)
	}
	runtime.KeepAlive(w)
}
