package cluster

import (
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/kube"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/kubeop/kubeop/delivery/release/fault"
)

func info(kind, name string) *resource.Info {
	return &resource.Info{Name: name, Mapping: &meta.RESTMapping{GroupVersionKind: schema.GroupVersionKind{Kind: kind}}}
}

func TestAnErrorNamesItsObjectOnce(t *testing.T) {
	tests := map[string]struct{ err, want string }{
		"no name":          {"json: cannot unmarshal number", "ConfigMap/web: json: cannot unmarshal number"},
		"named":            {`configmaps "web" is forbidden`, `configmaps "web" is forbidden`},
		"only a like name": {`namespaces "web-1" not found`, `ConfigMap/web: namespaces "web-1" not found`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			cause := errors.New(test.err)
			if got := named(info("ConfigMap", "web"), cause); got.Error() != test.want || !errors.Is(got, cause) {
				t.Errorf("got %v, want %s", got, test.want)
			}
		})
	}
	if err := named(info("ConfigMap", "web"), nil); err != nil {
		t.Errorf("named nothing: %v", err)
	}
}

func TestObjectsAreGroupedByKindInTheirOrder(t *testing.T) {
	list := kube.ResourceList{info("Secret", "a"), info("Secret", "b"), info("ConfigMap", "c"), info("Secret", "d")}
	var got [][]string
	for _, batch := range byKind(list) {
		var names []string
		for _, i := range batch {
			names = append(names, nameOf(i))
		}
		got = append(got, names)
	}
	want := [][]string{{"Secret/a", "Secret/b"}, {"ConfigMap/c"}, {"Secret/d"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestUnaskedGetIsNotFound pins how an info's Get finds nothing: building the request fails with a 404, and none is sent.
func TestUnaskedGetIsNotFound(t *testing.T) {
	if err := (requestless{}).Get().Resource("pods").Name("web").Do(t.Context()).Error(); !apierrors.IsNotFound(err) {
		t.Errorf("got %v, want a 404", err)
	}
}

// TestAManifestIsReadAsTheKindsThatAreServed: what is validated has to be served as it is written. What is not, such as an earlier manifest, is
// used in a version that is served, or left alone.
func TestAManifestIsReadAsTheKindsThatAreServed(t *testing.T) {
	const doc = "---\n"
	unknown := func(name string) string {
		return "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: " + name + "}\n"
	}
	for name, c := range map[string]struct {
		text     string
		validate bool
		want     []string
		logged   string
		says     string
		render   bool
	}{
		"nothing":                       {},
		"no namespace is the release's": {text: configMapKind + nameA, validate: true, want: []string{"v1 ConfigMap/a in kubeop-acme-shop"}},
		"another namespace stays":       {text: "apiVersion: v1\nkind: Secret\nmetadata: {name: a, namespace: other}\n", validate: true, want: []string{"v1 Secret/a in other"}},
		"a shared kind has none":        {text: "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n", validate: true, want: []string{"v1 Namespace/a in "}},
		"a version that is gone":        {text: "apiVersion: apps/v1beta1\nkind: Deployment\nmetadata: {name: a}\n", want: []string{"apps/v1 Deployment/a in kubeop-acme-shop"}},
		"a kind that is gone": {
			text: unknown("one") + doc + configMapKind + nameA, want: []string{"v1 ConfigMap/a in kubeop-acme-shop"},
			logged: "example.com/v1 Thing/one is left alone: the cluster serves no such kind",
		},
		"a version that is not served": {
			text: "apiVersion: apps/v1beta1\nkind: Deployment\nmetadata: {name: a}\n", validate: true,
			says: `Deployment/a: no matches for kind "Deployment" in version "apps/v1beta1"`,
		},
		"all kinds that are not served are named": {
			text: unknown("one") + doc + configMapKind + nameA + doc + unknown("two"), validate: true,
			says: "Thing/one: no matches for kind \"Thing\" in version \"example.com/v1\"; Thing/two: no matches for kind \"Thing\" in version \"example.com/v1\"",
		},
		"no name":             {text: configMapKind + "metadata: {}\n", says: "rendering the chart: a ConfigMap has no name", render: true},
		"a name is generated": {text: "apiVersion: v1\nkind: Pod\nmetadata: {generateName: a-}\n", want: []string{"v1 Pod/ in kubeop-acme-shop"}},
	} {
		t.Run(name, func(t *testing.T) {
			api, logged := &fakeAPI{}, []string(nil)
			client := api.client(t)
			client.Log = func(format string, args ...any) { logged = append(logged, fmt.Sprintf(format, args...)) }
			list, err := client.Build(strings.NewReader(c.text), c.validate)
			if (err != nil) != (c.says != "") || err != nil && (err.Error() != c.says || errors.Is(err, fault.ErrRender) != c.render) {
				t.Errorf("got %v, want %q", err, c.says)
			}
			if noted := client.Faults.All(); (noted != nil) != (err != nil) {
				t.Errorf("the action keeps %v of %v", noted, err)
			}
			var got []string
			for _, info := range list {
				got = append(got, fmt.Sprintf("%s %s in %s", info.Mapping.GroupVersionKind.GroupVersion(), nameOf(info), info.Namespace))
				if _, err := info.Client.Get().Do(t.Context()).Get(); !apierrors.IsNotFound(err) {
					t.Errorf("%s was found before it was asked for: %v", nameOf(info), err)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" || strings.Join(logged, "\n") != c.logged || len(api.requests) > 0 {
				t.Errorf("the log is %q, the requests are %v, -want +got:\n%s", logged, api.requests, diff)
			}
		})
	}
}

func TestAManifestThatCannotBeReadIsAnError(t *testing.T) {
	broken := errors.New("the pipe broke")
	if _, err := (&Client{}).Build(iotest.ErrReader(broken), true); !errors.Is(err, broken) || err.Error() != "reading the manifest: the pipe broke" {
		t.Errorf("got %v", err)
	}
}

// helmCalls are the interfaces that Helm's actions need of their client. They look for all but the first by a type assertion.
type helmCalls interface {
	kube.Interface
	kube.InterfaceExt
	kube.InterfaceThreeWayMerge
	kube.InterfaceLogs
	kube.InterfaceDeletionPropagation
}

var _ helmCalls = (*Client)(nil)

// TestHelmCallsNoMethodOfItsOwnClient, but one without pods; another is never called. A promoted method is in no file, because the compiler generates it.
func TestHelmCallsNoMethodOfItsOwnClient(t *testing.T) {
	inherited := []string{"OutputContainerLogsForPodList", "WaitAndGetCompletedPodPhase"}
	for call := range reflect.TypeFor[helmCalls]().Methods() {
		method, _ := reflect.TypeFor[*Client]().MethodByName(call.Name)
		start := method.Func.Pointer()
		file, _ := runtime.FuncForPC(start).FileLine(start)
		if promoted := file == "<autogenerated>"; promoted != slices.Contains(inherited, call.Name) {
			t.Errorf("%s is in %s", call.Name, file)
		}
	}
}

// TestHelmGetsNoLogsOfHooks, which it would copy to a place that nobody reads.
func TestHelmGetsNoLogsOfHooks(t *testing.T) {
	pods, err := (&Client{}).GetPodList("kubeop-acme-shop", metav1.ListOptions{})
	if err != nil || pods == nil || len(pods.Items) > 0 {
		t.Errorf("got %v, %v, want an empty list", pods, err)
	}
}

func TestWarningsOfTheAPIServerAreLogged(t *testing.T) {
	var logged []string
	client := &Client{Client: &kube.Client{Log: func(format string, args ...any) { logged = append(logged, fmt.Sprintf(format, args...)) }}}
	warnings{client}.HandleWarningHeader(299, "-", "policy/v1beta1 will be removed: 100% of it")
	if want := []string{"warning of the API server: policy/v1beta1 will be removed: 100% of it"}; !cmp.Equal(want, logged) {
		t.Errorf("got %q, want %q", logged, want)
	}
}

// TestClientsOfTwoVersionsDoNotShareTheirSettings, which would send the requests of one to the other.
func TestClientsOfTwoVersionsDoNotShareTheirSettings(t *testing.T) {
	clients := (&fakeAPI{}).client(t).rest
	for gv, want := range map[schema.GroupVersion]string{{Version: "v1"}: "/api/v1", {Group: "apps", Version: "v1"}: "/apis/apps/v1"} {
		for range 2 {
			client, err := clients.of(gv)
			if err != nil {
				t.Fatal(err)
			}
			if got := client.Get().URL().Path; got != want {
				t.Errorf("requests of %s go to %s, want %s", gv, got, want)
			}
		}
	}
	if clients.config.APIPath != "" || clients.config.GroupVersion != nil {
		t.Errorf("the shared settings are now those of %s", clients.config.GroupVersion)
	}
}
