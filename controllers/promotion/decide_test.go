package promotion

import (
	"strings"
	"testing"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// healthy returns an App that is ready for an hour.
func healthy(spec v1alpha1.AppSpec) *v1alpha1.App {
	app := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Name: "web", Generation: 2}, Spec: spec}
	app.Status.Conditions = []metav1.Condition{{
		Type: v1alpha1.ReadyCondition, Status: metav1.ConditionTrue, ObservedGeneration: 2, LastTransitionTime: metav1.NewTime(now.Add(-time.Hour)),
	}}
	return app
}

func imageApp(reference string) *v1alpha1.App {
	return healthy(v1alpha1.AppSpec{Type: v1alpha1.AppImage, Image: &v1alpha1.ImageSource{Reference: reference}})
}

func helmApp(version, values string) *v1alpha1.App {
	return healthy(v1alpha1.AppSpec{Type: v1alpha1.AppHelm, Helm: &v1alpha1.HelmSource{
		Repository: "https://charts.example.com", Chart: "web", Version: version, Values: &apiextensionsv1.JSON{Raw: []byte(values)},
	}})
}

func gitApp(ref *sourcev1.GitRepositoryRef) *v1alpha1.App {
	app := healthy(v1alpha1.AppSpec{Type: v1alpha1.AppGit, Git: &v1alpha1.GitSource{URL: "https://git.example.com/web", Ref: ref}})
	app.Status.LastAppliedRevision = "main@sha1:c0ffee"
	return app
}

// ociApp is an app of an artifact, of which that revision runs.
func ociApp(source v1alpha1.OCISource, revision string) *v1alpha1.App {
	source.URL = "oci://registry.example.com/web"
	app := healthy(v1alpha1.AppSpec{Type: v1alpha1.AppGit, Git: &v1alpha1.GitSource{OCI: &source}})
	app.Status.LastAppliedRevision = revision
	return app
}

func with(app *v1alpha1.App, change func(*v1alpha1.App)) *v1alpha1.App {
	change(app)
	return app
}

func TestOnlyTheVersionAndNamedFieldsArePromoted(t *testing.T) {
	fields := &v1alpha1.Promotion{From: "staging", Fields: []string{"helm.values.image.tag", "helm.values.replicas"}}
	for name, tc := range map[string]struct {
		from, to *v1alpha1.App
		p        *v1alpha1.Promotion
		want     string // the changes, or the error
	}{
		"an image":            {from: imageApp("web:1.1"), to: imageApp("web:1.0"), want: "image.reference: web:1.0 → web:1.1"},
		"the same":            {from: imageApp("web:1.1"), to: imageApp("web:1.1")},
		"of another registry": {from: imageApp("staging.example.com:5000/web:1.1@sha256:aa"), to: imageApp("prod.example.com/web:1.0"), want: "image.reference: prod.example.com/web:1.0 → prod.example.com/web:1.1@sha256:aa"},
		"that a policy chose": {from: with(imageApp("web"), func(a *v1alpha1.App) {
			a.Spec.Image.Policy = &v1alpha1.ImagePolicy{SemVer: "^1"}
			a.Status.Image = &v1alpha1.ImageStatus{Reference: "web:1.2@sha256:aa"}
		}), to: imageApp("web:1.0"), want: "image.reference: web:1.0 → web:1.2@sha256:aa"},
		"that a policy wrote": {from: with(imageApp("web:1.1"), func(a *v1alpha1.App) {
			a.Spec.Image.Policy = &v1alpha1.ImagePolicy{SemVer: "^1", Write: v1alpha1.WriteCommit}
			a.Status.Image = &v1alpha1.ImageStatus{Reference: "web:1.2@sha256:aa"}
		}), to: imageApp("web:1.0"), want: "image.reference: web:1.0 → web:1.1"},
		"to one with a policy": {from: imageApp("web:1.1"), to: with(imageApp("web:1.0"), func(a *v1alpha1.App) { a.Spec.Image.Policy = &v1alpha1.ImagePolicy{} }), want: "its image is chosen by spec.image.policy: remove the policy from its file, so that a version can be promoted"},
		"other types":          {from: imageApp("web:1.1"), to: helmApp("1.0.0", "{}"), want: "its type is Helm, and that of staging/web is Image"},
		"a chart's version":    {from: helmApp("1.1.0", `{"replicas": 1}`), to: helmApp("1.0.0", `{"replicas": 3}`), want: "helm.version: 1.0.0 → 1.1.0"},
		"a range": {from: with(helmApp("1.x", "{}"), func(a *v1alpha1.App) {
			a.Status.History = []v1alpha1.ReleaseSnapshot{{ChartVersion: "1.4.2"}, {ChartVersion: "1.4.1"}}
		}), to: helmApp("1.0.0", "{}"), want: "helm.version: 1.0.0 → 1.4.2"},
		"a digest": {
			from: with(helmApp("1.1.0", "{}"), func(a *v1alpha1.App) { a.Spec.Helm.Digest = "sha256:bb" }),
			to:   with(helmApp("1.0.0", "{}"), func(a *v1alpha1.App) { a.Spec.Helm.Digest = "sha256:aa" }),
			want: "helm.version: 1.0.0 → 1.1.0; helm.digest: sha256:aa → sha256:bb",
		},
		"a digest that only one has": {from: helmApp("1.1.0", "{}"), to: with(helmApp("1.0.0", "{}"), func(a *v1alpha1.App) { a.Spec.Helm.Digest = "sha256:aa" }), want: "its file has helm.digest, and the file of staging/web has none: in Git, write it there, too, or remove it here"},
		"values": {
			p: fields, from: helmApp("1.0.0", `{"image": {"tag": "v2"}, "replicas": 2}`), to: helmApp("1.0.0", `{"replicas": 3}`),
			want: "helm.values.image.tag: nothing → v2; helm.values.replicas: 3 → 2",
		},
		"a value that has no fields there": {p: fields, from: helmApp("1.0.0", `{"image": {"tag": "v2"}}`), to: helmApp("1.0.0", `{"image": "web:v1"}`), want: "helm.values.image.tag: nothing → v2"},
		"a value that has no fields":       {p: fields, from: helmApp("1.0.0", `{"image": "web:v1"}`), to: helmApp("1.0.0", `{"image": {"tag": "v2"}}`)},
		"a digest, and the same version":   {from: helmApp("1.0.0", "{}"), to: with(helmApp("1.0.0", "{}"), func(a *v1alpha1.App) { a.Spec.Helm.Digest = "sha256:aa" })},
		"a policy that chose nothing yet":  {from: with(imageApp("web"), func(a *v1alpha1.App) { a.Spec.Image.Policy = &v1alpha1.ImagePolicy{SemVer: "^1"} }), to: imageApp("web:1.0"), want: "image.reference: web:1.0 → web"},
		"a chart without a version":        {from: with(helmApp("", "{}"), func(a *v1alpha1.App) { a.Status.History = []v1alpha1.ReleaseSnapshot{{ChartVersion: "1.4.2"}} }), to: helmApp("1.0.0", "{}"), want: "helm.version: 1.0.0 → 1.4.2"},
		"charts without a version":         {from: with(helmApp("", "{}"), func(a *v1alpha1.App) { a.Status.History = []v1alpha1.ReleaseSnapshot{{ChartVersion: "1.4.2"}} }), to: helmApp("", "{}")},
		"a chart beside app.yaml": {from: with(helmApp("", "{}"), func(a *v1alpha1.App) {
			a.Spec.Helm.Repository, a.Spec.Helm.Chart, a.Spec.Helm.Path = "", "", "chart"
			a.Status.History = []v1alpha1.ReleaseSnapshot{{ChartVersion: "1.4.2"}}
		}), to: helmApp("1.0.0", "{}")},
		"an artifact by range":             {from: ociApp(v1alpha1.OCISource{SemVer: "^1"}, "1.4.0@sha256:aa"), to: ociApp(v1alpha1.OCISource{Tag: "1.3.0"}, ""), want: "git.oci.tag: 1.3.0 → 1.4.0"},
		"an artifact by range to a digest": {from: ociApp(v1alpha1.OCISource{SemVer: "^1"}, "1.4.0@sha256:aa"), to: ociApp(v1alpha1.OCISource{Tag: "1.3.0", Digest: "sha256:bb"}, ""), want: "git.oci.tag: 1.3.0 → 1.4.0; git.oci.digest: sha256:bb → sha256:aa"},
		"an artifact by tag to a digest":   {from: ociApp(v1alpha1.OCISource{Tag: "v2"}, "v2@sha256:aa"), to: ociApp(v1alpha1.OCISource{Tag: "v1", Digest: "sha256:bb"}, ""), want: "git.oci.tag: v1 → v2; git.oci.digest: sha256:bb → sha256:aa"},
		"an artifact by digest":            {from: ociApp(v1alpha1.OCISource{Digest: "sha256:aa"}, "sha256:aa"), to: ociApp(v1alpha1.OCISource{Digest: "sha256:bb"}, ""), want: "git.oci.digest: sha256:bb → sha256:aa"},
		"the latest artifact to a digest":  {from: ociApp(v1alpha1.OCISource{}, "latest@sha256:aa"), to: ociApp(v1alpha1.OCISource{Digest: "sha256:bb"}, ""), want: "git.oci.digest: sha256:bb → sha256:aa"},
		"the latest artifact to a tag":     {from: ociApp(v1alpha1.OCISource{}, "latest@sha256:aa"), to: ociApp(v1alpha1.OCISource{Tag: "v1"}, ""), want: "its file has git.oci.tag, and staging/web follows the tag latest: in Git, write git.oci.digest here, or a tag or semver there"},
		"the latest artifact to a tag, and a field": {p: &v1alpha1.Promotion{From: "staging", Fields: []string{"git.path"}},
			from: with(ociApp(v1alpha1.OCISource{}, "latest@sha256:aa"), func(a *v1alpha1.App) { a.Spec.Git.Path = "new" }), to: with(ociApp(v1alpha1.OCISource{Tag: "v1"}, ""), func(a *v1alpha1.App) { a.Spec.Git.Path = "old" }), want: "git.path: old → new"},
		"the latest artifact to a tag, by its digest": {p: &v1alpha1.Promotion{From: "staging", Fields: []string{"git.oci.digest"}},
			from: ociApp(v1alpha1.OCISource{}, "latest@sha256:aa"), to: ociApp(v1alpha1.OCISource{Tag: "v1"}, ""), want: "git.oci.digest: nothing → sha256:aa"},
		"the latest artifact to latest":   {from: ociApp(v1alpha1.OCISource{}, "latest@sha256:aa"), to: ociApp(v1alpha1.OCISource{Tag: "latest"}, "")},
		"a range to a range":              {from: ociApp(v1alpha1.OCISource{SemVer: "^1"}, "1.4.0@sha256:aa"), to: ociApp(v1alpha1.OCISource{SemVer: "^1"}, "")},
		"an artifact that is not fetched": {from: ociApp(v1alpha1.OCISource{SemVer: "^1"}, ""), to: ociApp(v1alpha1.OCISource{Tag: "v1"}, "")},
		"a commit that is not fetched":    {from: with(gitApp(&sourcev1.GitRepositoryRef{Commit: "abc"}), func(a *v1alpha1.App) { a.Status.LastAppliedRevision = "" }), to: gitApp(&sourcev1.GitRepositoryRef{Commit: "beef"}), want: "git.ref.commit: beef → abc"},
		"values that are not there":       {p: fields, from: helmApp("1.0.0", "{}"), to: helmApp("1.0.0", `{"replicas": 3}`)},
		"no path":                         {p: &v1alpha1.Promotion{From: "staging", Fields: []string{"helm..values"}}, from: helmApp("1.0.0", "{}"), to: helmApp("1.0.0", "{}"), want: `spec.promotion.fields: "helm..values" is no path of a field, such as helm.values.image.tag: "spec.helm..values" is not a field: a key is empty`},
		"a tag":                           {from: gitApp(&sourcev1.GitRepositoryRef{Tag: "v2"}), to: gitApp(&sourcev1.GitRepositoryRef{Tag: "v1"}), want: "git.ref.tag: v1 → v2"},
		"a branch to a commit":            {from: gitApp(&sourcev1.GitRepositoryRef{Branch: "main"}), to: gitApp(&sourcev1.GitRepositoryRef{Commit: "beef"}), want: "git.ref.commit: beef → c0ffee"},
		"a branch to a branch":            {from: gitApp(&sourcev1.GitRepositoryRef{Branch: "main"}), to: gitApp(&sourcev1.GitRepositoryRef{Branch: "stable"})},
		"a range without a release":       {from: helmApp("1.x", "{}"), to: helmApp("1.0.0", "{}"), want: "helm.version: 1.0.0 → 1.x"},
		"the default branch to a commit":  {from: gitApp(nil), to: gitApp(&sourcev1.GitRepositoryRef{Commit: "beef"}), want: "git.ref.commit: beef → c0ffee"},
		"a commit to the default branch":  {from: gitApp(&sourcev1.GitRepositoryRef{Commit: "beef"}), to: gitApp(nil)},
		"a branch that is not fetched":    {from: with(gitApp(&sourcev1.GitRepositoryRef{Branch: "main"}), func(a *v1alpha1.App) { a.Status.LastAppliedRevision = "" }), to: gitApp(&sourcev1.GitRepositoryRef{Commit: "beef"})},
		"an exact version with a v":       {from: with(helmApp("v1.1.0", "{}"), func(a *v1alpha1.App) { a.Status.History = []v1alpha1.ReleaseSnapshot{{ChartVersion: "1.4.2"}} }), to: helmApp("1.0.0", "{}"), want: "helm.version: 1.0.0 → v1.1.0"},
		"a commit of another repository":  {from: gitApp(&sourcev1.GitRepositoryRef{Branch: "main"}), to: with(gitApp(&sourcev1.GitRepositoryRef{Commit: "beef"}), func(a *v1alpha1.App) { a.Spec.Git.URL = "https://git.example.com/other" })},
		"an artifact": {
			from: healthy(v1alpha1.AppSpec{Type: v1alpha1.AppGit, Git: &v1alpha1.GitSource{OCI: &v1alpha1.OCISource{Tag: "2"}}}),
			to:   healthy(v1alpha1.AppSpec{Type: v1alpha1.AppGit, Git: &v1alpha1.GitSource{OCI: &v1alpha1.OCISource{Tag: "1"}}}), want: "git.oci.tag: 1 → 2",
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := tc.p
			if p == nil {
				p = &v1alpha1.Promotion{From: "staging"}
			}
			v, err := decide(p, tc.from, tc.to, now)
			var changes []string
			for _, c := range v.Changes {
				changes = append(changes, shownChange(c))
			}
			got := strings.Join(changes, "; ")
			if err != nil {
				got = err.Error()
			}
			if got != tc.want || (v.Version == "") != (len(v.Changes) == 0) || v.Waits != "" {
				t.Errorf("got %q, version %q, waits %q; want %q", got, v.Version, v.Waits, tc.want)
			}
		})
	}
}

func TestAVersionIdentifiesWhatIsWritten(t *testing.T) {
	p := &v1alpha1.Promotion{From: "staging"}
	versions := map[string]string{}
	for _, c := range [][2]string{{"web:1.1", "web:1.0"}, {"web:1.1", "web:0.9"}, {"web:1.2", "web:1.0"}} {
		v, err := decide(p, imageApp(c[0]), imageApp(c[1]), now)
		if err != nil || len(v.Version) != 8 {
			t.Fatalf("%+v, %v", v, err)
		}
		if was := versions[v.Version]; was != "" && was != c[0] {
			t.Errorf("%s and %s have the same version", was, c[0])
		}
		versions[v.Version] = c[0]
	}
	if len(versions) != 2 {
		t.Errorf("two images have %d versions", len(versions))
	}
}

func TestOnlyWhatIsHealthyIsPromoted(t *testing.T) {
	ready := func(change func(*metav1.Condition)) func(*v1alpha1.App) {
		return func(a *v1alpha1.App) { change(&a.Status.Conditions[0]) }
	}
	delivered := func(result string, ago time.Duration) func(*v1alpha1.App) {
		return func(a *v1alpha1.App) {
			at := metav1.NewTime(now.Add(-ago))
			a.Status.Deliveries = []v1alpha1.DeliveryRecord{{Result: result, FinishedAt: &at}}
		}
	}
	for name, tc := range map[string]struct {
		change func(*v1alpha1.App)
		p      v1alpha1.Promotion
		waits  string
		again  time.Duration
	}{
		"healthy":            {change: func(*v1alpha1.App) {}},
		"delivered long ago": {change: delivered(v1alpha1.DeliverySucceeded, 20*time.Minute)},
		"just delivered":     {change: delivered(v1alpha1.DeliverySucceeded, 4*time.Minute), waits: "staging/web is healthy since 13:42:40 UTC, and has to be for 10m0s", again: 6 * time.Minute},
		"ready again since": {change: func(a *v1alpha1.App) {
			delivered(v1alpha1.DeliverySucceeded, time.Hour)(a)
			a.Status.Conditions[0].LastTransitionTime = metav1.NewTime(now.Add(-4 * time.Minute))
		}, waits: "staging/web is healthy since 13:42:40 UTC, and has to be for 10m0s", again: 6 * time.Minute},
		"at the limit":       {change: delivered(v1alpha1.DeliverySucceeded, 10*time.Minute)},
		"a limit of its own": {p: v1alpha1.Promotion{HealthyFor: &metav1.Duration{Duration: 2 * time.Hour}}, change: func(*v1alpha1.App) {}, waits: "staging/web is healthy since 12:46:40 UTC, and has to be for 2h0m0s", again: time.Hour},
		"being delivered":    {change: delivered(v1alpha1.DeliveryProgressing, time.Hour), waits: "staging/web is being delivered"},
		"not ready": {change: ready(func(c *metav1.Condition) {
			c.Status, c.Reason, c.Message = metav1.ConditionFalse, "Unhealthy", "no\nmore"
		}), waits: "staging/web is not ready: Unhealthy: no"},
		"an older generation": {change: ready(func(c *metav1.Condition) { c.ObservedGeneration = 1 }), waits: "staging/web is not delivered yet"},
		"no condition":        {change: func(a *v1alpha1.App) { a.Status.Conditions = nil }, waits: "staging/web is not delivered yet"},
		"another folder":      {change: func(a *v1alpha1.App) { a.Annotations = map[string]string{v1alpha1.TreeAnnotation: "new"} }, waits: "staging/web is not delivered yet"},
		"suspended for now": {change: func(a *v1alpha1.App) {
			a.Status.Conditions = append(a.Status.Conditions, metav1.Condition{Type: v1alpha1.SuspendedCondition, Status: metav1.ConditionTrue})
		}, waits: "is suspended"},
		"not yet recorded as delivered": {change: func(a *v1alpha1.App) {
			a.Status.Deliveries = []v1alpha1.DeliveryRecord{{Result: v1alpha1.DeliverySucceeded}}
		}, waits: "staging/web is being delivered"},
		"suspended":     {change: func(a *v1alpha1.App) { a.Spec.Suspend = true }, waits: "staging/web is suspended"},
		"being deleted": {change: func(a *v1alpha1.App) { a.DeletionTimestamp = &metav1.Time{Time: now} }, waits: "staging/web is being deleted"},
	} {
		t.Run(name, func(t *testing.T) {
			tc.p.From = "staging"
			v, err := decide(&tc.p, with(imageApp("web:1.1"), tc.change), imageApp("web:1.0"), now)
			if err != nil || (tc.waits == "") != (v.Waits == "") || !strings.Contains(v.Waits, tc.waits) || v.Again != tc.again || len(v.Changes) != 1 {
				t.Errorf("%+v, %v; want %q, again after %s", v, err, tc.waits, tc.again)
			}
		})
	}
}

func TestAChangeIsShownShortly(t *testing.T) {
	long := strings.Repeat("x", 151)
	for value, want := range map[any]string{"text": "text", "a\n\x1b[1mb": "a\ufffd\ufffd[1mb", long[1:]: long[1:], long: "a value of 151 bytes", nil: "nothing", 3: "3", true: "true"} {
		if got := shown(value); got != want {
			t.Errorf("%v is shown as %q", value, got)
		}
	}
	if got := shown(map[string]any{"a": long}); got != "a value of 159 bytes" {
		t.Errorf("a large value is shown as %q", got)
	}
	if got := shown(map[string]any{"a": "b"}); got != `{"a":"b"}` {
		t.Errorf("a map is shown as %q", got)
	}
}
