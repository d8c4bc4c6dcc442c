package check

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/gitops/document"
	"github.com/kubeop/kubeop/gitops/identity"
)

var compiled = sync.OnceValues(Compile)

var (
	aTenant  = identity.Ref{Tenant: "acme"}
	aProject = identity.Ref{Tenant: "acme", Project: "shop"}
	anApp    = identity.Ref{Tenant: "acme", Project: "shop", App: "web"}
)

// findings returns what is wrong with a text at a place, as "line: why".
func findings(t *testing.T, at identity.Ref, text string, accepted bool) (*Result, []string) {
	t.Helper()
	kinds, err := compiled()
	if err != nil {
		t.Fatal(err)
	}
	d := kinds.Object(document.Parse("x.yaml", []byte(text)), at, accepted)
	return d, written(d)
}

func written(d *Result) []string {
	var all []string
	for _, f := range d.Findings {
		all = append(all, fmt.Sprintf("%d: %s", f.Line, f.Why))
	}
	return all
}

// app is an app.yaml whose spec is of one line.
func app(spec string) string {
	return "apiVersion: paas.kubeop.io/v1alpha1\nkind: App\nmetadata: {name: web}\nspec: " + spec + "\n"
}

func ours(kind, name, spec string) string {
	return "apiVersion: paas.kubeop.io/v1alpha1\nkind: " + kind + "\nmetadata: {name: " + name + "}\nspec: " + spec + "\n"
}

func project(metadata string) string {
	return "apiVersion: paas.kubeop.io/v1alpha1\nkind: Project\n" + metadata + "\n"
}

func TestADocumentIsTheObjectOfItsPath(t *testing.T) {
	const image = "{type: Image, image: {reference: nginx}}"
	for name, c := range map[string]struct {
		at   identity.Ref
		text string
		want []string
	}{
		"an app":              {anApp, app(image), nil},
		"a project":           {aProject, project("metadata: {name: shop}"), nil},
		"no kind":             {anApp, "apiVersion: paas.kubeop.io/v1alpha1\nmetadata: {name: web}\n", []string{`1: kind is missing; at this path it must be "App"`}},
		"another kind":        {anApp, project("metadata: {name: web}"), []string{`2: kind is "Project"; at this path it must be "App"`}},
		"a tenant elsewhere":  {aProject, "kind: Tenant\n", []string{"1: Tenants are declared in tenants/<tenant>/tenant.yaml of the platform repository only"}},
		"a number as kind":    {anApp, "kind: 3\n", []string{`1: kind is 3; at this path it must be "App"`}},
		"a misspelt kind":     {anApp, "knd: App\napiVersion: x\n", []string{"1: unknown field knd (did you mean kind?)"}},
		"a misspelt version":  {anApp, "apiversion: x\nkind: App\n", []string{"1: unknown field apiversion (did you mean apiVersion?)"}},
		"another version":     {anApp, "kind: App\napiVersion: apps/v1\n", []string{`2: apiVersion is "apps/v1"; it must be "paas.kubeop.io/v1alpha1"`}},
		"no version":          {anApp, "kind: App\n", []string{`1: apiVersion is missing; it must be "paas.kubeop.io/v1alpha1"`}},
		"no metadata":         {aProject, project("spec: {}"), []string{`1: metadata.name is missing; add "metadata: {name: shop}"`}},
		"misspelt metadata":   {aProject, project("metdata: {name: shop}"), []string{"3: unknown field metdata (did you mean metadata?)"}},
		"no name":             {aProject, project("metadata: {labels: {a: b}}"), []string{`3: metadata.name is missing; its folder is "shop"`}},
		"another name":        {aProject, project("metadata: {name: blog}"), []string{`3: metadata.name is "blog", but its folder is "shop": give both the same name`}},
		"a status":            {aProject, project("metadata: {name: shop}\nstatus: {}"), []string{"4: status is written by kubeop; remove it"}},
		"a namespace":         {aProject, project("metadata: {name: shop, namespace: x}"), []string{"3: metadata.namespace: the path decides the namespace; remove it"}},
		"finalizers":          {aProject, project("metadata: {name: shop, finalizers: [x]}"), []string{"3: metadata.finalizers: finalizers are kubeop's; remove them"}},
		"owners":              {aProject, project("metadata: {name: shop, ownerReferences: []}"), []string{"3: metadata.ownerReferences: owners are decided in the cluster; remove them"}},
		"another field":       {aProject, project("metadata: {name: shop, uid: x}"), []string{"3: metadata.uid: only name, labels and annotations are written in files; remove it"}},
		"misspelt labels":     {aProject, project("metadata: {name: shop, lables: {a: b}}"), []string{"3: unknown field metadata.lables (did you mean metadata.labels?)"}},
		"labels that are no":  {aProject, project("metadata: {name: shop, labels: x}"), []string{"3: metadata.labels must be a map of text"}},
		"labels of nothing":   {aProject, project("metadata: {name: shop, labels: null}"), nil},
		"a number as a label": {aProject, project("metadata: {name: shop, labels: {a: 1}}"), []string{`3: metadata.labels: the value of "a" must be text; put it in quotes`}},
		"a label of kubeop's": {aProject, project("metadata: {name: shop, labels: {paas.kubeop.io/project: shop}}"), []string{`3: metadata.labels: "paas.kubeop.io/project" is written by kubeop; remove it`}},
		"another tenant's":    {aProject, project("metadata: {name: shop, labels: {paas.kubeop.io/tenant: rival}}"), []string{`3: metadata.labels: paas.kubeop.io/tenant names the tenant "rival", but the file belongs to "acme"; remove it`}},
		"its own tenant's":    {aProject, project("metadata: {name: shop, labels: {paas.kubeop.io/tenant: acme}}"), []string{`3: metadata.labels: "paas.kubeop.io/tenant" is written by kubeop; remove it`}},
		"a label's key":       {aProject, project("metadata: {name: shop, labels: {'a b': c}}"), []string{`3: metadata.labels: the key "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character`}},
		"a label's value":     {aProject, project("metadata: {name: shop, labels: {a: 'b c'}}"), []string{`3: metadata.labels: the value of "a": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character`}},
		"a key in uppercase":  {aProject, project("metadata: {name: shop, annotations: {Example.com/a: b}}"), nil},
		"such a label":        {aProject, project("metadata: {name: shop, labels: {Example.com/a: b}}"), []string{`3: metadata.labels: the key "Example.com/a": prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character`}},
		"a registry":          {identity.Ref{Registry: "hub"}, ours("Registry", "hub", "{host: ghcr.io, secretRef: {name: hub}}"), nil},
		"kind of nothing":     {anApp, "kind: null\n", []string{`1: kind is missing; at this path it must be "App"`}},
		"two kinds":           {aProject, project("knd: App\nmetadata: {name: blog}"), []string{"3: unknown field knd (did you mean kind?)", `4: metadata.name is "blog", but its folder is "shop": give both the same name`}},
		"a policy elsewhere":  {anApp, ours("Policy", "strict", "{}"), []string{"2: Policies are declared in policies/<policy>.yaml of the platform repository only"}},
		"a registry there":    {anApp, ours("Registry", "hub", "{}"), []string{"2: Registries are declared in registries/<registry>.yaml of the platform repository only"}},
		"a Policy of others":  {aTenant, "apiVersion: kyverno.io/v1\nkind: Policy\n", []string{`2: kind is "Policy"; at this path it must be "Tenant"`}},
		"such a Registry":     {aTenant, "apiVersion: a.example/v1\nkind: Registry\n", []string{`2: kind is "Registry"; at this path it must be "Tenant"`}},
		"a field of a status": {aProject, project("metadata: {name: shop}\nstatus: {nothing: x}"), []string{"4: status is written by kubeop; remove it"}},
		"broken YAML":         {aProject, project("metadata: ["), []string{"3: broken YAML: did not find expected node content"}},
		"an annotation":       {aProject, project("metadata: {name: shop, annotations: {a: 'b c'}}"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			d, got := findings(t, c.at, c.text, false)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if (d.Object != nil) != (len(c.want) == 0) {
				t.Errorf("the object is %v", d.Object)
			}
		})
	}
}

func TestASpecIsHeldToTheSchemaAndWordedForPeople(t *testing.T) {
	for name, c := range map[string]struct{ spec, want string }{
		"no type":                        {"{image: {reference: nginx}}", "4: spec.type is required: write one of Image, Git, Helm, Raw"},
		"a misspelt type":                {"{typ: Image, image: {reference: nginx}}", "4: unknown field spec.typ (did you mean spec.type?)"},
		"an unknown field":               {"{type: Image, image: {reference: nginx}, replicaset: 1}", "4: unknown field spec.replicaset"},
		"another type of value":          {"{type: Image, image: {reference: 1}}", "4: spec.image.reference: must be of type string, not integer"},
		"an image that no runtime reads": {"{type: Image, image: {reference: 'Nginx'}}", `4: spec.image.reference: "Nginx" is not an image reference: the name must be lowercase`},
		"a type that does not exist":     {"{type: Docker, image: {reference: nginx}}", `4: spec.type: "Docker" is not one of Image, Git, Helm, Raw`},
		"a Secret to depend on":          {"{type: Image, image: {reference: nginx}, dependsOn: [{apiVersion: v1, kind: Secret, name: x}]}", "4: spec.dependsOn[0].kind: no app may depend on a Secret"},
		"a health expression":            {"{type: Image, image: {reference: nginx}, healthCheckExprs: [{apiVersion: v1, kind: Service, current: 'true'}, {apiVersion: v1, kind: Service, current: '('}]}", "4: spec.healthCheckExprs[1].current: 1:2: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"},
		"health of a Secret":             {"{type: Image, image: {reference: nginx}, healthCheckExprs: [{apiVersion: v1, kind: Secret, current: 'true'}]}", "4: spec.healthCheckExprs[0].kind: no expression may read a Secret"},
		"a duration":                     {"{type: Image, image: {reference: nginx}, interval: soon}", "4: spec.interval: must be a duration such as 30s or 5m"},
		"a URL":                          {"{type: Git, git: {url: 'git@host:a/b', path: .}}", "4: spec.git.url: must begin with https://, http:// or ssh:// (write git@host:a/b as ssh://git@host/a/b)"},
		"a URL with spaces":              {"{type: Git, git: {url: 'https://host/a b', path: .}}", "4: spec.git.url: must not hold spaces"},
		"an expression":                  {"{type: Image, image: {reference: nginx}, dependsOn: [{name: x, readyExpr: '('}]}", "4: spec.dependsOn[0].readyExpr: 1:2: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}: write CEL that is true once the dependency dep is ready, such as dep.status.succeeded >= 1"},
		"a hook without an image":        {"{type: Raw, raw: {path: manifests}, hooks: {pre: [{name: a, command: [x]}]}}", "4: spec.hooks.pre[0].image is required unless the app is of type Image"},
		"a namespace of an app":          {"{type: Image, image: {reference: nginx}, namespace: x}", "4: unknown field spec.namespace"},
		"no reference":                   {"{type: Image, image: {reference: ''}}", "4: spec.image.reference: must not be empty"},
		"a required field elsewhere":     {"{type: Image, image: {}, reference: nginx}", "4: unknown field spec.reference (did you mean spec.image.reference?)"},
		"an unknown field of an item":    {"{type: Image, image: {reference: nginx, ports: [{name: http, port: 80}]}, hosts: [{host: a.example, servce: x}]}", "4: unknown field spec.hosts[0].servce"},
		"a later hook":                   {"{type: Raw, raw: {path: manifests}, hooks: {post: [{name: a, command: [x], image: y}, {name: b, command: [x]}]}}", "4: spec.hooks.post[1].image is required unless the app is of type Image"},
	} {
		t.Run(name, func(t *testing.T) {
			_, got := findings(t, anApp, app(c.spec), false)
			if len(got) != 1 || got[0] != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestASpecThatIsRightHasNoFinding(t *testing.T) {
	for name, spec := range map[string]string{
		"a hook with the image of the app": "{type: Image, image: {reference: nginx}, hooks: {pre: [{name: a, command: [x]}]}}",
		"an expression":                    "{type: Image, image: {reference: nginx}, dependsOn: [{name: x, readyExpr: 'dep.status.succeeded >= 1'}]}",
		"any value of a chart":             "{type: Helm, helm: {path: chart, values: {a: {b: [1]}}}}",
		"null for a list":                  "{type: Image, image: {reference: nginx, ports: null}}",
	} {
		if _, got := findings(t, anApp, app(spec), false); len(got) != 0 {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestEachFaultOfASpecIsReported(t *testing.T) {
	for name, c := range map[string]struct {
		at   identity.Ref
		text string
		want []string
	}{
		"a value of the wrong type beside a misspelt field": {anApp, app("{type: Image, image: {reference: 1, referencee: x}}"),
			[]string{"4: unknown field spec.image.referencee (did you mean spec.image.reference?)", "4: spec.image.reference: must be of type string, not integer"}},
		"an item that is there twice, and is wrong": {anApp, app("{type: Image, image: {reference: nginx, ports: [{name: '1', port: 80}, {name: '1', port: 80}]}}"), []string{
			`4: spec.image.ports[1]: {"name":"1"} is there twice: keep one`, "4: spec.image.ports: two of the ports are the same port of the Service; give them a different servicePort",
			"4: spec.image.ports[0].name: a port name needs a letter", "4: spec.image.ports[1].name: a port name needs a letter",
		}},
		"two rules about one field":       {anApp, app("{type: Image, git: {url: 'https://a.example/b'}}"), []string{"4: spec: image is required when type is Image, and only then"}},
		"a name that its folder has, too": {identity.Ref{Tenant: "ac-me"}, ours("Tenant", "ac-me", "{}"), []string{"1: name must be a letter followed by at most 19 letters or digits, without a dash"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, got := findings(t, c.at, c.text, false)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestDefaultsAreThoseOfTheKind(t *testing.T) {
	kinds, err := compiled()
	if err != nil {
		t.Fatal(err)
	}
	given := &v1alpha1.App{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.AppKind}, ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	given.Spec = v1alpha1.AppSpec{Type: v1alpha1.AppRaw, Raw: &v1alpha1.RawSource{Path: "manifests"}}
	got, err := kinds.Default(given)
	if err != nil {
		t.Fatal(err)
	}
	if set, ok := got.(*v1alpha1.App); !ok || set.Spec.DeletionPolicy != "Delete" || set.Spec.Interval.Duration != 10*time.Minute || set.Name != "web" || set.Spec.Raw.Path != "manifests" {
		t.Errorf("got %+v", got)
	}
	given.Kind = "Widget"
	if _, err := kinds.Default(given); err == nil || err.Error() != "no file declares a Widget" {
		t.Errorf("of an unknown kind: %v", err)
	}
}

// TestPreviewsAreOfBranchesOrOfPullRequests, and of one of both.
func TestPreviewsAreOfBranchesOrOfPullRequests(t *testing.T) {
	const one = "4: spec.previews: exactly one of branches and pullRequests must be set"
	for spec, want := range map[string]string{
		"{branches: 'feature/*'}":                      "",
		"{pullRequests: true}":                         "",
		"{branches: 'feature/*', pullRequests: false}": "",
		"{branches: 'feature/*', pullRequests: true}":  one,
		"{pullRequests: false}":                        one,
		"{max: 3}":                                     one,
	} {
		_, got := findings(t, aProject, project("metadata: {name: shop}\nspec: {previews: "+spec+"}"), false)
		if strings.Join(got, "\n") != want {
			t.Errorf("%s: got %q, want %q", spec, got, want)
		}
	}
}

// TestProjectsOfThePlatformHaveOtherFields than those of tenants, and the names of namespaces.
func TestProjectsOfThePlatformHaveOtherFields(t *testing.T) {
	ofPlatform := identity.Ref{Tenant: v1alpha1.PlatformTenant, Project: "shop"}
	for name, c := range map[string]struct {
		at   identity.Ref
		spec string
		want []string
	}{
		"the platform's":                  {ofPlatform, "{}", nil},
		"the platform's with a namespace": {ofPlatform, "{namespace: {adopt: true}}", nil},
		"the platform's with a quota":     {ofPlatform, "{quota: {hard: {cpu: 1}}}", []string{"4: spec.quota: a project of the platform itself has no quota and no limits; remove it"}},
		"the platform's with a network":   {ofPlatform, "{network: {allowFrom: [a]}}", []string{"4: spec.network: a project of the platform itself has no network policy; remove it"}},
		"the platform's with limits":      {ofPlatform, "{limits: {}}", []string{"4: spec.limits: a project of the platform itself has no quota and no limits; remove it"}},
		"a tenant's with a quota":         {aProject, "{quota: {cpu: 1}, network: {allowFrom: [a]}}", nil},
		"a tenant's with a namespace":     {aProject, "{namespace: {adopt: true}}", []string{"4: spec.namespace: only projects of the platform itself, in platform/<project>/ of the platform repository, may set it; remove it"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, got := findings(t, c.at, project("metadata: {name: shop}\nspec: "+c.spec), true)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestAcceptedDocumentsAreNotCheckedAgainstTheSchemaAgain(t *testing.T) {
	text := app("{image: {reference: nginx}}") // It has no type.
	if d, got := findings(t, anApp, text, true); len(got) != 0 || d.Object == nil {
		t.Errorf("accepted: %v", got)
	}
	if _, got := findings(t, anApp, text+"spce: x\n", true); len(got) != 1 {
		t.Errorf("an unknown field of what was accepted: %v", got)
	}
	if d, got := findings(t, anApp, app("{type: Raw, raw: {path: 3}}"), true); d.Object != nil || len(got) != 1 || !strings.HasPrefix(got[0], "4: reading the App: ") {
		t.Errorf("what was accepted, and no App can have: %v", got)
	}
}

func TestTheLayoutIsOneThatIsRead(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"this one":         {"layout: v1\n", nil},
		"another":          {"layout: v2\n", []string{`1: layout is "v2"; this operator reads "v1"`}},
		"a number":         {"layout: 1\n", []string{`1: layout is 1; this operator reads "v1"`}},
		"none":             {"a: b\n", []string{"1: unknown field a", `1: layout is missing; this operator reads "v1"`}},
		"a misspelt field": {"layuot: v1\n", []string{"1: unknown field layuot (did you mean layout?)", `1: layout is missing; this operator reads "v1"`}},
		"broken":           {"layout: [\n", []string{"1: broken YAML: did not find expected node content"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := written(Version(document.Parse("kubeop.yaml", []byte(c.text))))
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestFoldersHaveNamesThatObjectsCanHave(t *testing.T) {
	kinds, err := compiled()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		at   identity.Ref
		good bool
	}{
		"a tenant":             {aTenant, true},
		"a tenant with a dash": {identity.Ref{Tenant: "ac-me"}, false},
		"an uppercase project": {identity.Ref{Tenant: "acme", Project: "Shop"}, false},
		"a project":            {aProject, true},
		"a project of a dash":  {identity.Ref{Tenant: "acme", Project: "shop-eu"}, true},
		"an app":               {anApp, true},
		"the platform's":       {identity.Ref{Tenant: v1alpha1.PlatformTenant, Project: "ingress"}, true},
		"one like kubeop's":    {identity.Ref{Tenant: v1alpha1.PlatformTenant, Project: "kubeop-acme"}, false},
		"a tenant's like that": {identity.Ref{Tenant: "acme", Project: "kubeop-acme"}, true},
		"an app in one":        {identity.Ref{Tenant: v1alpha1.PlatformTenant, Project: "kubeop-acme", App: "web"}, true},
		"an app with a dot":    {identity.Ref{Tenant: "acme", Project: "shop", App: "a.b"}, false},
	} {
		if why := kinds.Name(c.at); strings.Contains(why, "name name") {
			t.Errorf("%s: %q", name, why)
		}
		if why := kinds.Name(c.at); (why == "") != c.good || (why != "" && !strings.HasPrefix(why, "the folder's name")) {
			t.Errorf("%s: %q", name, why)
		}
	}
}

func TestTheNearestNameIsAtMostTwoEditsAway(t *testing.T) {
	known := []string{"image", "type", "replicas", "hosts", "env"}
	for name, want := range map[string]string{
		"imgae": "", "imag": "image", "IMAGE": "image", "images": "image", "typ": "type", "replicaz": "replicas", "replcas": "replicas", "rplcas": "replicas",
		"repls": "", "xyreplica": "", "e": "", "ev": "", "envs": "env", "xyz": "", "host": "hosts",
	} {
		if got, ok := Nearest(name, known); got != want || ok != (want != "") {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	for _, c := range []struct {
		a, b        string
		limit, want int
	}{{"abc", "abc", 3, 0}, {"abc", "abd", 3, 1}, {"abc", "ab", 3, 1}, {"xabc", "abc", 3, 1}, {"ab", "abc", 3, 1}, {"abc", "xyz", 3, 3}, {"abcdef", "abc", 3, 3}, {"kitten", "sitting", 9, 3}, {"", "ab", 9, 2}} {
		if got := edits(c.a, c.b, c.limit); got != c.want {
			t.Errorf("%s and %s: %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

func TestAFaultSuppressesFindingsAroundAndInsideIt(t *testing.T) {
	d := &Result{Document: &document.Document{}, faults: []fault{{field: "spec.image"}, {field: "spec.ports[0].nam", unknown: true, meant: "spec.ports[0].name"}, {field: "spec.x.zzz", unknown: true}}}
	for path, want := range map[string]bool{
		"spec.image": true, "spec.image.reference": true, "spec": true, "spec.images": false, "spec.ports": true, "spec.ports[1]": false, "spec.env": false,
	} {
		if got := d.explained(path); got != want {
			t.Errorf("%s is explained: %t, want %t", path, got, want)
		}
	}
	for path, want := range map[string]bool{
		"spec.ports[0].name": true, "spec.ports[0].port": false, "spec.x.type": true, "spec.type": false, "spec.x.y.type": false,
	} {
		if got := d.misspelt(path); got != want {
			t.Errorf("%s is misspelt: %t, want %t", path, got, want)
		}
	}
}

// TestABudgetIsOfWhatQuotasCount names each wrong resource at its line.
func TestABudgetIsOfWhatQuotasCount(t *testing.T) {
	text := "apiVersion: paas.kubeop.io/v1alpha1\nkind: Tenant\nmetadata: {name: acme}\nspec:\n  quota: {requests.example.com/gpu: 1}\n  budget:\n" +
		"    requests.cpu: 16\n    requests.example.com/gpu: 4\n    pods: -1\n    cpu: 16\n    example.com/disks: 3\n"
	_, got := findings(t, aTenant, text, false)
	want := []string{"10: spec.budget names cpu: the quotas of projects have it as requests.cpu; write that in spec.budget", "11: spec.budget names example.com/disks: the quota of a project does not count it, so projects could use more than the budget; remove it, or set in spec.quota how much of it each project may have", "9: spec.budget names pods: -1 is negative; write 0 or more in spec.budget"}
	if len(got) != len(want) {
		t.Fatalf("got %q", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("got %q, want %q", got[i], want[i])
		}
	}
}

// TestAQuotaHasAmountsThatTheAPIServerAccepts, that of previews, too.
func TestAQuotaHasAmountsThatTheAPIServerAccepts(t *testing.T) {
	_, got := findings(t, aProject, project("metadata: {name: shop}\nspec:\n  quota:\n    requests.cpu: 500m\n    pods: -1\n    count/jobs.batch: '0.5'\n  previews:\n    branches: a\n    quota:\n      pods: '1.5'\n"), false)
	want := []string{"8: spec.quota[count/jobs.batch]: 500m is not a whole number, such as 1", "7: spec.quota[pods]: -1 is negative; it must be 0 or more", "12: spec.previews.quota[pods]: 1500m is not a whole number, such as 2"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestFreezesOfATenantEnd, and begin at times that can be computed.
func TestFreezesOfATenantEnd(t *testing.T) {
	for freeze, want := range map[string]string{
		"{name: weekend, start: '0 18 * * FRI', duration: 62h}":                           "",
		"{name: weekend, start: now, duration: 62h}":                                      "4: spec.freeze[1].start: must be at least 9 characters long",
		"{name: weekend, start: '0 18 * * FRI', duration: 62h, timeZone: Europe/Nowhere}": `4: spec.freeze[1].timeZone: "Europe/Nowhere" is not the name of a time zone, such as Europe/Berlin`,
	} {
		text := "apiVersion: paas.kubeop.io/v1alpha1\nkind: Tenant\nmetadata: {name: acme}\nspec: {freeze: [{name: night, start: '0 18 * * *', duration: 8h}, " + freeze + "]}\n"
		_, got := findings(t, aTenant, text, false)
		if want == "" && len(got) > 0 || want != "" && (len(got) != 1 || got[0] != want) {
			t.Errorf("%s: got %q, want %q", freeze, got, want)
		}
	}
}
