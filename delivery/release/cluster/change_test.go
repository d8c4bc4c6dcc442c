package cluster

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubeop/kubeop/delivery/command"
	"github.com/kubeop/kubeop/delivery/own"
	"github.com/kubeop/kubeop/delivery/release/cause"
	"github.com/kubeop/kubeop/delivery/release/fault"
	"github.com/kubeop/kubeop/delivery/release/manifest"
)

// Marks of live objects: of release web, of app web, and of another app.
const (
	ofRelease  = `labels: {app.kubernetes.io/managed-by: Helm}, annotations: {meta.helm.sh/release-name: web, meta.helm.sh/release-namespace: kubeop-acme-shop}`
	ofApp      = `labels: {paas.kubeop.io/tenant: acme, paas.kubeop.io/project: shop, paas.kubeop.io/app: web}`
	ofOtherApp = `labels: {paas.kubeop.io/tenant: acme, paas.kubeop.io/project: shop, paas.kubeop.io/app: api}`
)

// liveObject reads an object as the API server has it.
func liveObject(t testing.TB, kind, metadata, rest string) *unstructured.Unstructured {
	t.Helper()
	if metadata != "" {
		metadata = ", " + metadata
	}
	return object(t, kind+"metadata: {name: a, namespace: kubeop-acme-shop, uid: old, resourceVersion: '7'"+metadata+"}\n"+rest)
}

const (
	configMapKind   = "apiVersion: v1\nkind: ConfigMap\n"
	claimKind       = "apiVersion: v1\nkind: PersistentVolumeClaim\n"
	statefulSetKind = "apiVersion: apps/v1\nkind: StatefulSet\n"
	nameA           = "metadata: {name: a}\n"
)

// with returns fields of an object of a kind, of which one has the value.
func with(kind, value string) string {
	switch kind {
	case claimKind:
		return "spec: {volumeName: disk, storageClassName: '" + value + "'}\nstatus: {phase: Bound}\n"
	case statefulSetKind:
		return "spec: {serviceName: '" + value + "'}\n"
	}
	return "data: {a: '" + value + "'}\n"
}

var (
	objects      = schema.GroupResource{Resource: "objects"}
	errForbidden = apierrors.NewForbidden(objects, "a", errors.New("no role allows it"))
	errImmutable = apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, "a", nil)
	errContended = apierrors.NewConflict(schema.GroupResource{Resource: "resourcequotas"}, "kubeop", errors.New("it was counted meanwhile"))
	errConflict  = apierrors.NewConflict(objects, "a", errors.New("it changed"))
)

// changed is what a test of a change expects.
type changed struct {
	// requests are joined with commas.
	requests string
	// data is the data of the live object afterwards, as "key=value"; "-" if there is no object.
	data string
	// created: the object is the action's own.
	created bool
	fails   string
}

// check compares an object of the fake API server and a change with what is expected.
func (want changed) check(t *testing.T, api *fakeAPI, ch *change, err error) {
	t.Helper()
	if got := strings.Join(api.requests, ","); got != want.requests {
		t.Errorf("the requests are %s, want %s", got, want.requests)
	}
	if want.fails == "" && err != nil || want.fails != "" && (err == nil || !strings.Contains(err.Error(), want.fails)) {
		t.Errorf("got error %v, want %q", err, want.fails)
	}
	if ch.created != want.created || ch.done != (want.fails == "") {
		t.Errorf("created %t, done %t; want created %t", ch.created, ch.done, want.created)
	}
	if got := dataOf(api.live); got != want.data {
		t.Errorf("the object has %q, want %q", got, want.data)
	}
	if wrote := strings.HasSuffix(want.requests, "POST") || strings.HasSuffix(want.requests, "PATCH"); wrote && err == nil {
		if ch.live == nil || ch.live.GetResourceVersion() != api.live.GetResourceVersion() || ch.info.ResourceVersion != api.live.GetResourceVersion() {
			t.Errorf("the answer of the API server is lost: %v, %s", ch.live, ch.info.ResourceVersion)
		}
	}
}

func dataOf(o *unstructured.Unstructured) string {
	if o == nil {
		return "-"
	}
	var pairs []string
	data, _, _ := unstructured.NestedStringMap(o.Object, "data")
	for _, field := range []string{"storageClassName", "serviceName"} {
		if value, ok, _ := unstructured.NestedString(o.Object, "spec", field); ok {
			data = map[string]string{"a": value}
		}
	}
	for _, key := range []string{"a", "b", "c"} {
		if value, ok := data[key]; ok {
			pairs = append(pairs, key+"="+value)
		}
	}
	return strings.Join(pairs, " ")
}

// TestAnUpgradeMakesTheObjectsOfTheManifest without requests about what nobody changed, and keeps what others added or own.
func TestAnUpgradeMakesTheObjectsOfTheManifest(t *testing.T) {
	const yes, no = "yes", "no"
	ran := map[manifest.Identity]bool{manifest.IdentityOf(schema.GroupKind{Kind: "ConfigMap"}, "kubeop-acme-shop", "a"): true}
	manifestOf := func(data string) string { return configMapKind + nameA + "data: " + data + "\n" }
	live := func(metadata, data string) string { return metadata + "|data: " + data + "\n" }
	tests := map[string]struct {
		// before is empty for an object that is new in the chart; live is metadata and the rest.
		before, want, live string
		// unmoved: the live object is as the release left it; "" if that is unknown.
		unmoved string
		terms   Terms
		fails   map[string]*apierrors.StatusError
		expect  changed
	}{
		"new in the chart":                     {want: manifestOf("{a: '1'}"), expect: changed{requests: "POST", data: "a=1", created: true}},
		"new, and creating it is refused":      {want: manifestOf("{a: '1'}"), fails: map[string]*apierrors.StatusError{"POST": errForbidden}, expect: changed{requests: "POST", data: "-", fails: "no role allows it"}},
		"new, and an earlier try made it":      {want: manifestOf("{a: '1'}"), live: live(ofRelease, "{b: '2'}"), expect: changed{requests: "POST,GET,PATCH", data: "a=1 b=2"}},
		"new, and it is nobody's":              {want: manifestOf("{a: '1'}"), live: live("", "{b: '2'}"), expect: changed{requests: "POST,GET", data: "b=2", fails: "ConfigMap/a exists and does not belong to this release; set spec.helm.upgrade.takeOwnership in app.yaml"}},
		"new, and it is taken over":            {want: manifestOf("{a: '1'}"), live: live("", "{b: '2'}"), terms: Terms{TakeOwnership: true}, expect: changed{requests: "POST,GET,PATCH", data: "a=1 b=2"}},
		"new, and it is another app's":         {want: manifestOf("{a: '1'}"), live: live(ofOtherApp, "{b: '2'}"), terms: Terms{TakeOwnership: true}, expect: changed{requests: "POST,GET", data: "b=2", fails: "ConfigMap/a exists and belongs to app api"}},
		"new, and it cannot be read":           {want: manifestOf("{a: '1'}"), live: live(ofRelease, "{b: '2'}"), fails: map[string]*apierrors.StatusError{"GET": errForbidden}, expect: changed{requests: "POST,GET", data: "b=2", fails: "reading: "}},
		"new, the last try failed":             {want: manifestOf("{a: '1'}"), terms: Terms{ReadFirst: true}, expect: changed{requests: "GET,POST", data: "a=1", created: true}},
		"new, the failed try made it":          {want: manifestOf("{a: '1'}"), live: live(ofRelease, "{b: '2'}"), terms: Terms{ReadFirst: true}, expect: changed{requests: "GET,PATCH", data: "a=1 b=2"}},
		"new, the failed try made it so":       {want: manifestOf("{a: '1'}"), live: live(ofRelease, "{a: '1'}"), terms: Terms{ReadFirst: true}, expect: changed{requests: "GET", data: "a=1"}},
		"new, tried again, and it is nobody's": {want: manifestOf("{a: '1'}"), live: live("", "{b: '2'}"), terms: Terms{ReadFirst: true}, expect: changed{requests: "GET", data: "b=2", fails: "ConfigMap/a exists and does not belong to this release; set spec.helm.upgrade.takeOwnership in app.yaml"}},
		"new, tried again, cannot be read":     {want: manifestOf("{a: '1'}"), fails: map[string]*apierrors.StatusError{"GET": errForbidden}, terms: Terms{ReadFirst: true}, expect: changed{requests: "GET", data: "-", fails: "reading: "}},
		"nobody changed it, nor the chart":     {before: manifestOf("{a: '1'}"), want: manifestOf("{a: '1'}"), live: live(ofRelease, "{a: '1'}"), unmoved: yes, expect: changed{data: "a=1"}},
		"only the chart changed it":            {before: manifestOf("{a: '1', b: '1'}"), want: manifestOf("{a: '2'}"), live: live(ofRelease, "{a: '1', b: '1'}"), unmoved: yes, expect: changed{requests: "PATCH", data: "a=2"}},
		"somebody changed it":                  {before: manifestOf("{a: '1'}"), want: manifestOf("{a: '1'}"), live: live(ofRelease, "{a: '9', c: '3'}"), unmoved: no, expect: changed{requests: "GET,PATCH", data: "a=1 c=3"}},
		"it is unknown whether it changed":     {before: manifestOf("{a: '1', b: '1'}"), want: manifestOf("{a: '1'}"), live: live(ofRelease, "{a: '9', b: '1', c: '3'}"), expect: changed{requests: "GET,PATCH", data: "a=1 c=3"}},
		"it is as it should be":                {before: manifestOf("{a: '1'}"), want: manifestOf("{a: '1'}"), live: live(ofRelease, "{a: '1', c: '3'}"), unmoved: no, expect: changed{requests: "GET", data: "a=1 c=3"}},
		"somebody deleted it":                  {before: manifestOf("{a: '1'}"), want: manifestOf("{a: '1'}"), unmoved: no, expect: changed{requests: "GET,POST", data: "a=1", created: true}},
		"it goes before it is changed":         {before: manifestOf("{a: '1'}"), want: manifestOf("{a: '2'}"), unmoved: yes, expect: changed{requests: "PATCH,POST", data: "a=2", created: true}},
		"it cannot be read":                    {before: manifestOf("{a: '1'}"), want: manifestOf("{a: '2'}"), live: live(ofRelease, "{a: '1'}"), fails: map[string]*apierrors.StatusError{"GET": errForbidden}, expect: changed{requests: "GET", data: "a=1", fails: "reading: "}},
		"it refuses the change":                {before: manifestOf("{a: '1'}"), want: manifestOf("{a: '2'}"), live: live(ofRelease, "{a: '1'}"), fails: map[string]*apierrors.StatusError{"PATCH": errImmutable}, expect: changed{requests: "GET,PATCH", data: "a=1", fails: "is invalid"}},
		"a hook left it":                       {before: manifestOf("{a: '1'}"), want: manifestOf("{a: '2'}"), live: live(ofApp, "{b: '1'}"), terms: Terms{Ran: ran}, expect: changed{requests: "GET,DELETE,GET,POST", data: "a=2", created: true}},
		"a hook left it, and it must stay":     {before: manifestOf("{a: '1'}"), want: manifestOf("{a: '2'}"), live: live(ofApp, "{b: '1'}"), terms: Terms{Ran: ran}, fails: map[string]*apierrors.StatusError{"DELETE": errForbidden}, expect: changed{requests: "GET,DELETE", data: "b=1", fails: "no role allows it"}},
		"a hook left it, after a failure":      {before: manifestOf("{a: '1'}"), want: manifestOf("{a: '2'}"), live: live(ofApp, "{b: '1'}"), terms: Terms{Ran: ran, Wary: true}, expect: changed{requests: "GET,DELETE,GET,POST", data: "a=2", created: true}},
		"it is another app's by now":           {before: manifestOf("{a: '1'}"), want: manifestOf("{a: '2'}"), live: live(ofOtherApp, "{a: '1'}"), expect: changed{requests: "GET", data: "a=1", fails: "belongs to app api"}},
		"it is nobody's":                       {before: manifestOf("{a: '1'}"), want: manifestOf("{a: '2'}"), live: live("", "{a: '1'}"), expect: changed{requests: "GET,PATCH", data: "a=2"}},
		"it is nobody's after a failure":       {before: manifestOf("{a: '1'}"), want: manifestOf("{a: '2'}"), live: live("", "{a: '1'}"), terms: Terms{Wary: true}, expect: changed{requests: "GET", data: "a=1", fails: "does not belong to this release"}},
		"it is the release's after a failure":  {before: manifestOf("{a: '1'}"), want: manifestOf("{a: '2'}"), live: live(ofRelease, "{a: '1'}"), terms: Terms{Wary: true}, expect: changed{requests: "GET,PATCH", data: "a=2"}},
		"the chart has another version of it":  {before: strings.Replace(manifestOf("{a: '1', b: '1'}"), "v1", "v1beta1", 1), want: manifestOf("{a: '2'}"), live: live(ofRelease, "{a: '1', b: '1'}"), unmoved: yes, expect: changed{requests: "GET,PATCH", data: "a=2 b=1"}},
		"it is being deleted":                  {before: manifestOf("{a: '1'}"), want: manifestOf("{a: '2'}"), live: live(ofRelease+", deletionTimestamp: '2026-01-01T00:00:00Z'", "{a: '1'}"), expect: changed{requests: "GET", data: "a=1", fails: "ConfigMap/a"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			api := &fakeAPI{fails: tc.fails}
			if metadata, rest, ok := strings.Cut(tc.live, "|"); ok {
				api.live = liveObject(t, configMapKind, metadata, rest)
			}
			c := api.client(t)
			tc.terms.App = c.Terms.App
			c.Terms = tc.terms
			if tc.unmoved != "" {
				c.Terms.Unmoved = func(*unstructured.Unstructured) bool { return tc.unmoved == yes }
			}
			want := c.claimed(object(t, tc.want))
			ch := &change{client: c, info: target(t, c, want), want: want, phase: "upgrade"}
			if tc.before != "" {
				before := c.claimed(object(t, tc.before))
				before.SetNamespace(want.GetNamespace())
				ch.before = before
			}
			err := ch.carryOut()
			tc.expect.check(t, api, ch, err)
			if deleted := name == "it is being deleted"; deleted != errors.As(err, new(*fault.Terminating)) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestOnlyACreationThatConflictsWithACountOfTheQuotaIsRepeated(t *testing.T) {
	for name, tc := range map[string]struct {
		failed *apierrors.StatusError
		expect changed
	}{
		"about the quota":  {errContended, changed{requests: "POST,POST", data: "a=1", created: true}},
		"about the object": {errConflict, changed{requests: "POST", data: "-", fails: "it changed"}},
	} {
		t.Run(name, func(t *testing.T) {
			api := &fakeAPI{fails: map[string]*apierrors.StatusError{"POST": tc.failed}, once: map[string]bool{"POST": true}}
			c := api.client(t)
			want := c.claimed(object(t, configMapKind+nameA+"data: {a: '1'}\n"))
			ch := &change{client: c, info: target(t, c, want), want: want, phase: "install"}
			err := ch.carryOut()
			tc.expect.check(t, api, ch, err)
		})
	}
}

// TestForceRecreatesOnlyWhatIsImmutableAndTheReleases and never what is invalid in any case, another's, or holds data.
func TestForceRecreatesOnlyWhatIsImmutableAndTheReleases(t *testing.T) {
	invalid := map[string]*apierrors.StatusError{"PATCH": errImmutable}
	and := func(name string, err *apierrors.StatusError) map[string]*apierrors.StatusError {
		return map[string]*apierrors.StatusError{"PATCH": errImmutable, name: err}
	}
	tests := map[string]struct {
		kind, metadata string
		noForce        bool
		fails          map[string]*apierrors.StatusError
		// goes: the object goes before it is read again. unread: it cannot be read again. claims go with the object.
		goes   bool
		unread bool
		claims []string
		expect changed
	}{
		"the release's":                     {metadata: ofRelease, fails: invalid, expect: changed{requests: "GET,PATCH,POST dry-run,GET,DELETE,GET,POST", data: "a=2", created: true}},
		"without force":                     {metadata: ofRelease, fails: invalid, noForce: true, expect: changed{requests: "GET,PATCH", data: "a=1", fails: "is invalid"}},
		"another error":                     {metadata: ofRelease, fails: map[string]*apierrors.StatusError{"PATCH": errForbidden}, expect: changed{requests: "GET,PATCH", data: "a=1", fails: "no role allows it"}},
		"the manifest is invalid":           {metadata: ofRelease, fails: and("POST dry-run", errImmutable), expect: changed{requests: "GET,PATCH,POST dry-run", data: "a=1", fails: "is invalid"}},
		"nobody's":                          {fails: invalid, expect: changed{requests: "GET,PATCH,POST dry-run,GET", data: "a=1", fails: "is invalid"}},
		"it cannot be read again":           {metadata: ofRelease, fails: invalid, unread: true, expect: changed{requests: "GET,PATCH,POST dry-run,GET", data: "a=1", fails: "reading: objects \"a\" is forbidden"}},
		"it cannot be deleted":              {metadata: ofRelease, fails: and("DELETE", errForbidden), expect: changed{requests: "GET,PATCH,POST dry-run,GET,DELETE", data: "a=1", fails: "replacing, because it refuses the change (ConfigMap \"a\" is invalid): "}},
		"it is gone meanwhile":              {metadata: ofRelease, fails: invalid, goes: true, expect: changed{requests: "GET,PATCH,POST dry-run,GET,POST", data: "a=2", created: true}},
		"a claim":                           {kind: claimKind, metadata: ofRelease, fails: invalid, expect: changed{requests: "GET,PATCH,POST dry-run", data: "a=1", fails: "force does not delete a PersistentVolumeClaim, because "}},
		"claims with data would go with it": {kind: statefulSetKind, metadata: ofRelease, fails: invalid, claims: []string{"data-a-0"}, expect: changed{requests: "GET,PATCH,POST dry-run,GET", data: "a=1", fails: "data-a-0"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			kind := tc.kind
			if kind == "" {
				kind = configMapKind
			}
			api := &fakeAPI{fails: tc.fails, live: liveObject(t, kind, tc.metadata, with(kind, "1"))}
			c := api.client(t)
			c.Terms.Force = !tc.noForce
			c.owned = ownedBy("old", tc.claims)
			want, before := c.claimed(object(t, kind+nameA+with(kind, "2"))), c.claimed(object(t, kind+nameA+with(kind, "1")))
			ch := &change{client: c, info: target(t, c, want), want: want, before: before, phase: "upgrade"}
			api.read = func(n int) {
				if n == 2 && tc.goes {
					api.live = nil
				}
				if n == 2 && tc.unread {
					api.fails = map[string]*apierrors.StatusError{"GET": errForbidden}
				}
			}
			err := ch.carryOut()
			tc.expect.check(t, api, ch, err)
		})
	}
}

// TestObjectsOfEarlierHooksAreReplacedUnlessTheyHoldData: of a claim only what the manifest says is changed.
func TestObjectsOfEarlierHooksAreReplacedUnlessTheyHoldData(t *testing.T) {
	tests := map[string]struct {
		kind, metadata string
		// hook: the manifest's object is a hook; former: an earlier revision ran such a hook.
		hook, former bool
		fails        map[string]*apierrors.StatusError
		expect       changed
		uid          string
	}{
		"an object of the chart was a hook":        {kind: configMapKind, metadata: ofApp, former: true, expect: changed{requests: "POST,GET,DELETE,GET,POST", data: "a=2", created: true}, uid: "new"},
		"an earlier hook cannot be deleted":        {kind: configMapKind, metadata: ofApp, former: true, fails: map[string]*apierrors.StatusError{"DELETE": errForbidden}, expect: changed{requests: "POST,GET,DELETE", data: "a=1", fails: "no role allows it"}, uid: "old"},
		"a claim of the chart was a hook":          {kind: claimKind, metadata: ofApp, former: true, expect: changed{requests: "POST,GET,PATCH", data: "a=2"}, uid: "old"},
		"a hook is there":                          {kind: configMapKind, metadata: ofApp, hook: true, expect: changed{requests: "POST", data: "a=1", fails: "ConfigMap/a exists: an earlier run left this hook, and its helm.sh/hook-delete-policy keeps it"}, uid: "old"},
		"a claim of a hook holds data":             {kind: claimKind, metadata: ofApp, hook: true, expect: changed{requests: "POST,GET", data: "a=1"}, uid: "old"},
		"a claim of a hook is another app's":       {kind: claimKind, metadata: ofOtherApp, hook: true, expect: changed{requests: "POST,GET", data: "a=1", fails: "give the hook another name in Git; or an owner of the tenant with the role admin, or an administrator of the cluster, may run: kubectl delete pvc a -n kubeop-acme-shop"}, uid: "old"},
		"a claim of a hook is a person's":          {kind: claimKind, hook: true, expect: changed{requests: "POST,GET", data: "a=1", fails: "give the hook another name in Git; or an owner of the tenant with the role admin, or an administrator of the cluster, may run: kubectl delete pvc a -n kubeop-acme-shop"}, uid: "old"},
		"a claim of a hook cannot be read":         {kind: claimKind, metadata: ofApp, hook: true, fails: map[string]*apierrors.StatusError{"GET": errForbidden}, expect: changed{requests: "POST,GET", data: "a=1", fails: "reading: "}, uid: "old"},
		"an object of the chart is there, no hook": {kind: configMapKind, metadata: ofApp, expect: changed{requests: "POST,GET", data: "a=1", fails: "does not belong to this release"}, uid: "old"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			api := &fakeAPI{fails: tc.fails, live: liveObject(t, tc.kind, tc.metadata, with(tc.kind, "1"))}
			c := api.client(t)
			want := object(t, tc.kind+nameA+with(tc.kind, "2"))
			if !tc.hook {
				want = c.claimed(want)
			}
			c.Terms.Ran[c.Release.Identify(want)] = tc.former
			ch := &change{client: c, info: target(t, c, want), want: want, phase: "install"}
			err := ch.carryOut()
			tc.expect.check(t, api, ch, err)
			if diff := cmp.Diff(tc.uid, string(api.live.GetUID())); diff != "" {
				t.Errorf("the UID (-want +got):\n%s", diff)
			}
		})
	}
}

// TestUnknownFieldsAreWarnedOfUnlessTheTermsAreLenient, and the field manager is Helm's.
func TestUnknownFieldsAreWarnedOfUnlessTheTermsAreLenient(t *testing.T) {
	for lenient, want := range map[bool]string{false: "Warn", true: "Ignore"} {
		api := &fakeAPI{}
		c := api.client(t)
		c.Terms.Lenient = lenient
		o := c.claimed(object(t, configMapKind+nameA))
		if err := (&change{client: c, info: target(t, c, o), want: o}).carryOut(); err != nil {
			t.Fatal(err)
		}
		if got := api.queries[0]; got.Get("fieldValidation") != want || got.Get("fieldManager") != fieldManager {
			t.Errorf("lenient %t: the request has %v", lenient, got)
		}
	}
}

// TestAnObjectThatDoesNotGoInTimeIsReported as one that is being deleted: a later try may find it gone.
func TestAnObjectThatDoesNotGoInTimeIsReported(t *testing.T) {
	api := &fakeAPI{live: liveObject(t, configMapKind, ofRelease, "")}
	c := api.client(t)
	c.clock = &pauses{late: true}
	live := api.live.DeepCopy()
	api.read = func(int) { api.live = live } // A finalizer holds it.
	var terminating *fault.Terminating
	if err := c.deleteAndWait(target(t, c, live.DeepCopy()), live); !errors.As(err, &terminating) || len(terminating.Objects) != 1 || terminating.Objects[0] != "ConfigMap/a" {
		t.Errorf("got %v", err)
	}
	if !cause.IsEnvironment(terminating) {
		t.Error("it is not tried again")
	}
}

// TestADeletionIsWaitedForUntilTheObjectIsGone or replaced by another one, and ends when it cannot be read.
func TestADeletionIsWaitedForUntilTheObjectIsGone(t *testing.T) {
	another := liveObject(t, configMapKind, ofRelease, "")
	another.SetUID("another")
	for name, tc := range map[string]struct {
		// left is what is read after the deletion.
		left     *unstructured.Unstructured
		fails    map[string]*apierrors.StatusError
		says     string
		requests string
	}{
		"it goes":                        {requests: "DELETE,GET"},
		"somebody makes another one":     {left: another, requests: "DELETE,GET"},
		"it cannot be read any more":     {fails: map[string]*apierrors.StatusError{"GET": errForbidden}, says: "no role allows it", requests: "DELETE,GET"},
		"the deletion itself is refused": {fails: map[string]*apierrors.StatusError{"DELETE": errForbidden}, says: "no role allows it", requests: "DELETE"},
	} {
		t.Run(name, func(t *testing.T) {
			api := &fakeAPI{live: liveObject(t, configMapKind, ofRelease, ""), fails: tc.fails}
			c := api.client(t)
			c.clock = &pauses{late: true}
			live := api.live.DeepCopy()
			api.read = func(int) { api.live = tc.left }
			err := c.deleteAndWait(target(t, c, live.DeepCopy()), live)
			if tc.says == "" && err != nil || tc.says != "" && (err == nil || !strings.Contains(err.Error(), tc.says)) {
				t.Errorf("got %v, want %q", err, tc.says)
			}
			if got := strings.Join(api.requests, ","); got != tc.requests {
				t.Errorf("the requests are %s, want %s", got, tc.requests)
			}
		})
	}
}

// TestTheMessageSaysWhoMayTakeAClusterScopedObject: an app of the platform itself may with takeOwnership; for other apps an administrator marks it.
func TestTheMessageSaysWhoMayTakeAClusterScopedObject(t *testing.T) {
	for platform, says := range map[bool]string{
		false: "Namespace/a exists and does not belong to this release; " +
			own.NotAdopted + command.Annotate(command.Administrator, "namespace", &metav1.ObjectMeta{Name: "a"}, NameAnnotation, "web") + " " + NamespaceAnnotation + "=kubeop-acme-shop",
		true: "Namespace/a exists and does not belong to this release; set spec.helm.install.takeOwnership in app.yaml or, ",
	} {
		api := &fakeAPI{live: liveObject(t, namespaceKind, "", "")}
		api.live.SetNamespace("")
		c := api.client(t)
		c.Release.Platform = platform
		want := c.claimed(object(t, namespaceKind+nameA))
		err := (&change{client: c, info: target(t, c, want), want: want, phase: "install"}).carryOut()
		if err == nil || !strings.HasPrefix(err.Error(), says) || !apierrors.IsAlreadyExists(err) {
			t.Errorf("of the platform: %t: got %v, want %q", platform, err, says)
		}
	}
}
