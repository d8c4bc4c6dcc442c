package records

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"io"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chart"
	helm "helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage"
	"helm.sh/helm/v3/pkg/storage/driver"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	kubetesting "k8s.io/client-go/testing"

	"github.com/kubeop/kubeop/delivery/release/decide"
	"github.com/kubeop/kubeop/delivery/release/fault"
	"github.com/kubeop/kubeop/delivery/release/fence"
	"github.com/kubeop/kubeop/delivery/release/manifest"
)

// zipped is what Helm keeps in a record.
func zipped(t *testing.T, text string) string {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(out.Bytes())
}

func storeOn(client typedcorev1.SecretInterface) Store {
	return Store{
		client: client, release: types.NamespacedName{Namespace: "team", Name: "web"}, memory: &Memo{},
		now: func() time.Time { return noon },
	}
}

func TestForgedRecordsAreRefused(t *testing.T) {
	tests := map[string]struct{ payload, want string }{
		"no base64":        {"%", "kubectl delete secret " + decide.KeyOf("web", 1) + " -n team"},
		"not zipped":       {base64.StdEncoding.EncodeToString([]byte("hello, this is nothing")), "kubectl delete secret " + decide.KeyOf("web", 1) + " -n team"},
		"cut off":          {zipped(t, strings.Repeat(" ", 1000))[:20], "kubectl delete secret " + decide.KeyOf("web", 1) + " -n team"},
		"a bomb":           {zipped(t, strings.Repeat(" ", maxRecordBytes+1)), "inflates to more than 16 MiB"},
		"a bomb of values": {zipped(t, `{"name":"web","version":1,"info":{},"config":{"a":[`+strings.Repeat("{},", maxRecordNodes)+`{}]}}`), "more than 300000 values"},
		"no JSON":          {zipped(t, "hello"), "kubectl delete secret " + decide.KeyOf("web", 1) + " -n team"},
		"null":             {zipped(t, "null"), "it has no status"},
		"no status":        {zipped(t, `{"name":"web","version":1}`), "it has no status"},
		"another release":  {zipped(t, `{"name":"other","version":1,"info":{}}`), "is no record of revision 1 of release web"},
		"another number":   {zipped(t, `{"name":"web","version":2,"info":{}}`), "is no record of revision 1 of release web"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset(&corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Name: decide.KeyOf("web", 1), Namespace: "team"},
				Data:       map[string][]byte{"release": []byte(test.payload)},
			})
			_, _, err := storeOn(client.CoreV1().Secrets("team")).Read(t.Context(), 1)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

// kept is a release as kubeop records it.
func recorded(number int, status helm.Status) *helm.Release {
	return &helm.Release{
		Name: "web", Namespace: "team", Version: number, Info: &helm.Info{Status: status}, Manifest: "kind: ConfigMap",
		Chart:  &chart.Chart{Metadata: &chart.Metadata{Name: "web", Version: "1.2.3", AppVersion: "9"}},
		Config: map[string]any{"a": 1}, Labels: map[string]string{decide.AppLabel: "shop"},
	}
}

func TestHelmReadsOurRecords(t *testing.T) {
	client := fake.NewClientset().CoreV1().Secrets("team")
	if _, err := storeOn(client).insert(t.Context(), recorded(1, helm.StatusDeployed), nil); err != nil {
		t.Fatal(err)
	}
	got, err := storage.Init(driver.NewSecrets(client)).Deployed("web")
	if err != nil {
		t.Fatal(err)
	}
	labels := map[string]string{
		decide.AppLabel: "shop", "owner": "helm", "name": "web", "status": "deployed", "version": "1", "createdAt": "1777896000",
	}
	if diff := cmp.Diff(labels, got.Labels); diff != "" {
		t.Error(diff)
	}
	if got.Manifest != "kind: ConfigMap" || got.Chart.Metadata.Version != "1.2.3" || got.Version != 1 {
		t.Errorf("got %+v", got)
	}
}

func TestRecordsOfHelmAreRead(t *testing.T) {
	client := fake.NewClientset().CoreV1().Secrets("team")
	if err := storage.Init(driver.NewSecrets(client)).Create(recorded(3, helm.StatusFailed)); err != nil {
		t.Fatal(err)
	}
	got, _, err := storeOn(client).Read(t.Context(), 3)
	if err != nil {
		t.Fatal(err)
	}
	if got.Info.Status != helm.StatusFailed || !maps.Equal(got.Labels, map[string]string{decide.AppLabel: "shop"}) {
		t.Errorf("got %+v with labels %v", got.Info, got.Labels)
	}
}

func TestAReleaseWithoutLabelsIsRecorded(t *testing.T) {
	api := fake.NewClientset()
	store, rel := storeOn(api.CoreV1().Secrets("team")), recorded(1, helm.StatusDeployed)
	rel.Labels = nil
	if _, err := store.insert(t.Context(), rel, nil); err != nil {
		t.Fatal(err)
	}
	got, meta, err := store.Read(t.Context(), 1)
	if err != nil || got.Info.Status != helm.StatusDeployed || meta.Labels["status"] != "deployed" || meta.Labels["version"] != "1" || meta.Labels["owner"] != "helm" {
		t.Errorf("got %+v with the labels %v, %v", got, meta.Labels, err)
	}
	rel.Config = map[string]any{"a": math.Inf(1)}
	if _, err := store.Replace(t.Context(), rel, meta.ResourceVersion); !errors.Is(err, fault.ErrRender) {
		t.Errorf("values that are no JSON: got %v", err)
	}
}

func TestListingNeedsAnAddress(t *testing.T) {
	_, err := Lister(&rest.Config{Host: "https://[::1", Impersonate: rest.ImpersonationConfig{UserName: "deployer"}})(t.Context(), "team", "web")
	if err == nil || !strings.HasPrefix(err.Error(), "connecting as deployer: ") {
		t.Errorf("got %v", err)
	}
}

func TestATakenNumberIsFenced(t *testing.T) {
	client := fake.NewClientset().CoreV1().Secrets("team")
	if _, err := storeOn(client).insert(t.Context(), recorded(1, helm.StatusPendingInstall), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := storeOn(client).insert(t.Context(), recorded(1, helm.StatusPendingInstall), nil); !errors.Is(err, fence.ErrFenced) {
		t.Errorf("got %v, want ErrFenced", err)
	}
	if _, err := storeOn(client).Replace(t.Context(), recorded(2, helm.StatusFailed), "1"); !errors.Is(err, fence.ErrFenced) {
		t.Errorf("a record that is gone: got %v, want ErrFenced", err)
	}
}

func TestContentIsTheSameBeforeAndAfterStorage(t *testing.T) {
	rel := recorded(1, helm.StatusDeployed)
	rel.Config = map[string]any{"big": int64(9007199254740993), "float": 1e21, "list": []any{1, "x", nil}, "bad": "a\xffb"}
	rel.Manifest = "kind: \xff\xfe"
	rel.Hooks = []*helm.Hook{{Path: "b", Manifest: "2"}, {Path: "a", Manifest: "1"}}
	before, err := decide.Content(rel)
	if err != nil {
		t.Fatal(err)
	}
	client := fake.NewClientset().CoreV1().Secrets("team")
	if _, err := storeOn(client).insert(t.Context(), rel, nil); err != nil {
		t.Fatal(err)
	}
	read, _, err := storeOn(client).Read(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	read.Hooks[0], read.Hooks[1] = read.Hooks[1], read.Hooks[0]
	read.Hooks[0].LastRun.Phase, read.Hooks[0].DeletePolicies = helm.HookPhaseFailed, []helm.HookDeletePolicy{helm.HookFailed}
	if after, err := decide.Content(read); err != nil || after != before {
		t.Errorf("before %s, after %s, %v", before, after, err)
	}
	for name, tamper := range map[string]func(){
		"manifest": func() { read.Manifest += " " },
		"hook":     func() { read.Hooks[0].Manifest += " " },
		"values":   func() { read.Config["new"] = true },
	} {
		tamper()
		if after, err := decide.Content(read); err != nil || after == before {
			t.Errorf("%s changed and the content is the same, %v", name, err)
		}
	}
}

func TestSignsInTextAreNoValues(t *testing.T) {
	rel := recorded(1, helm.StatusDeployed)
	rel.Manifest = strings.Repeat(`- {"a": [1, 2], 'b': "\\"}`+"\n", maxRecordNodes)
	client := fake.NewClientset().CoreV1().Secrets("team")
	if _, err := storeOn(client).insert(t.Context(), rel, nil); err != nil {
		t.Fatal(err)
	}
	if _, _, err := storeOn(client).Read(t.Context(), 1); err != nil {
		t.Error(err)
	}
}

func TestAnOutlineHoldsNoPayloads(t *testing.T) {
	client := fake.NewClientset().CoreV1().Secrets("team")
	var known decide.State
	for n := 1; n <= 12; n++ {
		rel := recorded(n, helm.StatusSuperseded)
		name := strconv.Itoa(n % 2)
		rel.Manifest = "kind: ConfigMap\napiVersion: v1\nmetadata: {namespace: other, name: c" + strconv.Itoa(n) + "}\ndata: {a: much}\n---\n" +
			"kind: Secret\napiVersion: v1\nmetadata: {name: s" + name + ", annotations: {helm.sh/resource-policy: keep}}\n"
		meta, err := storeOn(client).insert(t.Context(), rel, nil)
		if err != nil {
			t.Fatal(err)
		}
		known = append(known, decide.Revision{Number: n, Version: meta.ResourceVersion, Status: helm.StatusSuperseded})
	}
	r := NewDriver(t.Context(), storeOn(client), fence.New(func() time.Time { return noon }, nil), known)
	if err := r.Load(12); err != nil {
		t.Fatal(err)
	}
	got, err := r.Outline()
	if err != nil {
		t.Fatal(err)
	}
	text, err := manifest.Write([]manifest.Document{{Objects: got}})
	if first := got[0]; first.GroupVersionKind() != (schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}) || first.GetNamespace() != "other" || first.GetName() != "c12" {
		t.Errorf("the first object is %v", first.Object)
	}
	if err != nil || len(got) != maxOutlined+2 || strings.Contains(text, "much") || strings.Count(text, "keep") != 2 {
		t.Errorf("got %d objects: %s", len(got), text)
	}
	for n, h := range r.held {
		if h.loaded != (n == 12) || (h.Manifest != "") != (n == 12) {
			t.Errorf("the payload of revision %d is at hand: %t", n, h.loaded)
		}
	}
}

// TestARecordThatIsReadIsInTheHistory, without another request.
func TestARecordThatIsReadIsInTheHistory(t *testing.T) {
	client := fake.NewClientset().CoreV1().Secrets("team")
	writer := storeOn(client)
	if _, err := writer.insert(t.Context(), recorded(3, helm.StatusDeployed), nil); err != nil {
		t.Fatal(err)
	}
	reader := storeOn(client)
	rel, meta, err := reader.Read(t.Context(), 3)
	if err != nil || rel.Version != 3 || meta.Name != decide.KeyOf("web", 3) {
		t.Fatalf("%+v, %+v, %v", rel, meta, err)
	}
	got := reader.memory.History(decide.StateOf("web", listed(record(3, helm.StatusDeployed))))
	if len(got) != 1 || got[0].Revision != 3 || got[0].Chart != "web" || got[0].ChartVersion != "1.2.3" {
		t.Errorf("the history is %+v", got)
	}
}

// TestARecordThatWasCopiedIsOfTheNamespaceItIsIn: Helm would otherwise change the objects of the namespace that it came from.
func TestARecordThatWasCopiedIsOfTheNamespaceItIsIn(t *testing.T) {
	client := fake.NewClientset().CoreV1().Secrets("team")
	copied := recorded(1, helm.StatusDeployed)
	copied.Namespace = "other"
	if err := storage.Init(driver.NewSecrets(client)).Create(copied); err != nil {
		t.Fatal(err)
	}
	got, _, err := storeOn(client).Read(t.Context(), 1)
	if err != nil || got.Namespace != "team" {
		t.Errorf("got %+v, %v, want the namespace team", got, err)
	}
}

// TestTheLabelsOfARecordAreNotThoseOfTheRelease, which Helm compares with the next ones.
func TestTheLabelsOfARecordAreNotThoseOfTheRelease(t *testing.T) {
	rel := recorded(1, helm.StatusDeployed)
	secret, err := Encode(rel, "createdAt", noon)
	if err != nil || secret.Labels["owner"] != "helm" || !maps.Equal(rel.Labels, map[string]string{decide.AppLabel: "shop"}) {
		t.Errorf("the release has the labels %v, the record %v, %v", rel.Labels, secret.Labels, err)
	}
}

// TestARecordThatSomeoneElseWroteIsNotDeleted, and one that is gone needs no deletion.
func TestARecordThatSomeoneElseWroteIsNotDeleted(t *testing.T) {
	away := errors.New("no API server")
	for name, c := range map[string]struct{ err, want error }{
		"it is deleted": {},
		"it is gone":    {err: apierrors.NewNotFound(corev1.Resource("secrets"), "web")},
		"it is changed": {err: apierrors.NewConflict(corev1.Resource("secrets"), "web", nil), want: fence.ErrFenced},
		"it is unknown": {err: away, want: away},
	} {
		t.Run(name, func(t *testing.T) {
			api := fake.NewClientset(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: decide.KeyOf("web", 1), Namespace: "team"}})
			api.PrependReactor("delete", "secrets", func(kubetesting.Action) (bool, runtime.Object, error) { return c.err != nil, nil, c.err })
			if err := storeOn(api.CoreV1().Secrets("team")).remove(t.Context(), 1, "7"); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}

// TestOnlyTheRecordsOfTheReleaseAreListed, in the namespace of the release and without their payloads.
func TestOnlyTheRecordsOfTheReleaseAreListed(t *testing.T) {
	asked := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.Path + "?" + r.URL.Query().Encode()
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "items": [{"metadata": {"name": "sh.helm.release.v1.web.v1"}}]}`)
	}))
	defer server.Close()
	list, err := Lister(&rest.Config{Host: server.URL})(t.Context(), "team", "web")
	if err != nil || len(list) != 1 || list[0].Name != "sh.helm.release.v1.web.v1" {
		t.Errorf("got %v, %v", list, err)
	}
	if want := "/api/v1/namespaces/team/secrets?labelSelector=owner%3Dhelm%2Cname%3Dweb"; asked != want {
		t.Errorf("asked for %s, want %s", asked, want)
	}
}

func TestARevisionThatIsNotKubeopsNamesTheWayToReleaseItAgain(t *testing.T) {
	rel, app := recorded(1, helm.StatusDeployed), types.NamespacedName{Namespace: "kubeop-acme-shop", Name: "web"}
	err := CheckGenuine(rel, app)
	if !errors.Is(err, decide.ErrAltered) || !strings.Contains(err.Error(), "; to release it again, ") || !strings.Contains(err.Error(), "kubeop-acme-shop") || !strings.Contains(err.Error(), "acme") || !strings.Contains(err.Error(), "web") {
		t.Errorf("got %v", err)
	}
	if rel.Labels[decide.ContentLabel], err = decide.Content(rel); err != nil {
		t.Fatal(err)
	}
	rel.Labels[decide.RevisionLabel] = "1"
	if err := CheckGenuine(rel, app); err != nil {
		t.Errorf("kubeop's own revision: %v", err)
	}
}
