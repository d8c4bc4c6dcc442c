package preview

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestTheNameOfAPreviewIsStableAndItsOwn(t *testing.T) {
	label := regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,33}[a-z0-9])?$`)
	seen := map[string]string{}
	for _, branch := range []string{
		"login", "feature/login", "feature-login", "Feature-Login", "feature--login", "feature/login/", "feature.login", "-", "ä", "🦊", "a",
		strings.Repeat("a", 200), strings.Repeat("a", 201), "feature/" + strings.Repeat("-", 40), strings.TrimPrefix(Name("shop", "feature/login"), "shop-pr-"),
	} {
		for _, project := range []string{"shop", "s", strings.Repeat("p", 20)} {
			name := Name(project, branch)
			if !label.MatchString(name) || !strings.HasPrefix(name, project+"-pr-") || name != Name(project, branch) {
				t.Errorf("branch %q of %s has the project %q", branch, project, name)
			}
			if other, taken := seen[name]; taken {
				t.Errorf("branches %q and %q share the project %s", branch, other, name)
			}
			seen[name] = branch
		}
	}
	if got := Number("shop", 12); got != "shop-pr-12" {
		t.Errorf("a pull request has the project %s", got)
	}
	for name, want := range map[string]int64{"shop-pr-12": 12, "shop-pr-login": 0, "web-pr-12": 0, "12": 12} {
		if got := NumberOf("shop", name); got != want {
			t.Errorf("%s is of pull request %d, want %d", name, got, want)
		}
	}
	if got := Name("shop", "login"); got != "shop-pr-login" {
		t.Errorf("a plain branch has the project %s", got)
	}
}

func limits(spec *v1alpha1.ProjectPreviews, running ...string) Limits {
	return Limits{
		Project: "shop", Spec: spec, Main: "main", Follows: "main", Now: now,
		Declared: func(name string) bool { return name == "shop-pr-declared" },
		Running: func(name string) bool {
			for _, branch := range running {
				if name == Name("shop", branch) {
					return true
				}
			}
			return false
		},
	}
}

func TestABranchWithoutAPreviewSaysWhy(t *testing.T) {
	young := now.Add(-time.Hour)
	for name, c := range map[string]struct {
		spec     v1alpha1.ProjectPreviews
		running  []string
		branches []Branch
		// want is why each branch has no preview, in order; "" for one that has.
		want []string
	}{
		"those that match":            {v1alpha1.ProjectPreviews{Branches: "f*"}, nil, []Branch{{Name: "fix", Hash: "1", Time: young}, {Name: "main", Hash: "2", Time: young}, {Name: "f/x", Hash: "3", Time: young}}, []string{""}},
		"not the one that is applied": {v1alpha1.ProjectPreviews{Branches: "*"}, nil, []Branch{{Name: "main", Hash: "1", Time: young}, {Name: "a", Hash: "2", Time: young}}, []string{""}},
		"without commits of its own":  {v1alpha1.ProjectPreviews{Branches: "*"}, nil, []Branch{{Name: "a", Hash: "main", Time: young}}, []string{"the branch has no commits of its own"}},
		"the default of max": {v1alpha1.ProjectPreviews{Branches: "*"}, nil, []Branch{{Name: "a", Hash: "1", Time: young}, {Name: "b", Hash: "1", Time: young}, {Name: "c", Hash: "1", Time: young}, {Name: "d", Hash: "1", Time: young}, {Name: "e", Hash: "1", Time: young}, {Name: "f", Hash: "1", Time: young}},
			[]string{"", "", "", "", "", "there are 5 previews, as many as spec.previews.max allows: delete a branch or close a pull request, or raise max"}},
		"running ones first":       {v1alpha1.ProjectPreviews{Branches: "*", Max: 1}, []string{"z"}, []Branch{{Name: "a", Hash: "1", Time: young}, {Name: "z", Hash: "1", Time: young}}, []string{"", "there are 1 previews, as many as spec.previews.max allows: delete a branch or close a pull request, or raise max"}},
		"ttl is over":              {v1alpha1.ProjectPreviews{Branches: "*", Max: 1}, nil, []Branch{{Name: "a", Hash: "1", Time: now.Add(-73 * time.Hour)}, {Name: "b", Hash: "1", Time: now.Add(-71 * time.Hour)}}, []string{"its last commit is older than spec.previews.ttl of 72h0m0s: push to it again", ""}},
		"a shorter ttl":            {v1alpha1.ProjectPreviews{Branches: "*", TTL: &metav1.Duration{Duration: time.Hour}}, nil, []Branch{{Name: "a", Hash: "1", Time: now.Add(-61 * time.Minute)}, {Name: "b", Hash: "1", Time: young}}, []string{"its last commit is older than spec.previews.ttl of 1h0m0s: push to it again", ""}},
		"a date in the future":     {v1alpha1.ProjectPreviews{Branches: "*"}, nil, []Branch{{Name: "a", Hash: "1", Time: now.Add(time.Hour)}, {Name: "b", Hash: "1", Time: now.Add(time.Minute)}}, []string{"its last commit has a date in the future, so ttl cannot end: correct the clock, and commit again in Git", ""}},
		"a declared project":       {v1alpha1.ProjectPreviews{Branches: "*"}, nil, []Branch{{Name: "declared", Hash: "1", Time: young}}, []string{"the repository declares a project shop-pr-declared itself: rename the branch or the project in Git"}},
		"one that failed":          {v1alpha1.ProjectPreviews{Branches: "*", Max: 1}, nil, []Branch{{Name: "a", Hash: "1", Failed: "it is too large"}, {Name: "b", Hash: "1", Time: young}}, []string{"it is too large", ""}},
		"a running one that fails": {v1alpha1.ProjectPreviews{Branches: "*", Max: 1}, []string{"a"}, []Branch{{Name: "a", Hash: "1", Failed: "it is too large"}, {Name: "b", Hash: "1", Time: young}}, []string{"", "there are 1 previews, as many as spec.previews.max allows: delete a branch or close a pull request, or raise max"}},
		"pull requests by number": {v1alpha1.ProjectPreviews{PullRequests: true, Max: 2}, nil, []Branch{{Name: "a", Hash: "1", Time: young, PullRequest: 10}, {Name: "b", Hash: "1", Time: young, PullRequest: 9}, {Name: "c", Hash: "1", Time: young, PullRequest: 8, Fork: true}, {Name: "d", Hash: "1", Time: young, PullRequest: 11}},
			[]string{"the pull request is from a fork, and anybody may open one: push its branch to this repository", "", "", "there are 2 previews, as many as spec.previews.max allows: delete a branch or close a pull request, or raise max"}},
		"running pull requests": {v1alpha1.ProjectPreviews{PullRequests: true, Max: 1}, []string{"10"}, []Branch{{Name: "a", Hash: "1", Time: young, PullRequest: 10}, {Name: "b", Hash: "1", Time: young, PullRequest: 9}}, []string{"", "there are 1 previews, as many as spec.previews.max allows: delete a branch or close a pull request, or raise max"}},
		"an old pull request":   {v1alpha1.ProjectPreviews{PullRequests: true}, nil, []Branch{{Name: "a", Hash: "1", Time: now.Add(-73 * time.Hour), PullRequest: 10}}, []string{"its last commit is older than spec.previews.ttl of 72h0m0s: push to it again"}},
		"equal projects":        {v1alpha1.ProjectPreviews{Branches: "*"}, nil, []Branch{{Name: "a", Hash: "1", Time: young}, {Name: "a", Hash: "2", Time: young}}, []string{"", "branch a has the same project shop-pr-a: rename one of the two in Git"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, p := range limits(&c.spec, c.running...).Choose(c.branches) {
				got = append(got, p.Missing)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestAPreviewHasNoHostOfTheProject(t *testing.T) {
	app := func(host string, hosts ...string) *v1alpha1.App {
		a := &v1alpha1.App{Spec: v1alpha1.AppSpec{Host: host, Ingress: &v1alpha1.AppIngress{}}}
		a.Spec.DependsOn = []v1alpha1.Dependency{{Name: "db", Project: "shop"}, {Name: "db", Project: "other"}}
		for _, h := range hosts {
			a.Spec.Hosts = append(a.Spec.Hosts, v1alpha1.AppHost{Host: h})
		}
		return a
	}
	without := app("shop.example.com")
	Adapt(without, "shop", "shop-pr-login", "")
	if s := without.Spec; s.Host != "" || s.Hosts != nil || s.Ingress != nil {
		t.Errorf("without a pattern the app has %v", s)
	}
	one, many, none := app("shop.example.com"), app("", "a.example.com", "b.example.com"), app("")
	for _, a := range []*v1alpha1.App{one, many, none} {
		Adapt(a, "shop", "shop-pr-login", "{branch}-{host}")
		if a.Spec.DependsOn[0].Project != "" || a.Spec.DependsOn[1].Project != "other" {
			t.Errorf("the app depends on %v", a.Spec.DependsOn)
		}
	}
	if one.Spec.Host != "login-shop.example.com" || many.Spec.Hosts[0].Host != "login-a.example.com" || many.Spec.Hosts[1].Host != "login-b.example.com" || none.Spec.Host != "" {
		t.Errorf("the hosts are %q, %v and %q", one.Spec.Host, many.Spec.Hosts, none.Spec.Host)
	}
}

// TestHostsThatBecomeOneAreFound: the same name with other paths is served side by side.
func TestHostsThatBecomeOneAreFound(t *testing.T) {
	app := func(name string, hosts ...string) *v1alpha1.App {
		a := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Name: name}}
		for _, at := range hosts {
			host, path, _ := strings.Cut(at, "/")
			a.Spec.Hosts = append(a.Spec.Hosts, v1alpha1.AppHost{Host: host, Path: "/" + path})
		}
		return a
	}
	single := app("docs")
	single.Spec.Host = "docs.example.com"
	for name, c := range map[string]struct {
		pattern string
		apps    []*v1alpha1.App
		want    string
	}{
		"one host":             {"{branch}.example.com", []*v1alpha1.App{app("web", "a.example.com"), app("db")}, ""},
		"two of one app":       {"{branch}.example.com", []*v1alpha1.App{app("web", "a.example.com", "b.example.com")}, "app web has login.example.com twice, because"},
		"those of two apps":    {"{branch}.example.com", []*v1alpha1.App{app("web", "a.example.com"), single}, "apps web and docs both have login.example.com, because"},
		"with a path":          {"{branch}.example.com", []*v1alpha1.App{app("web", "a.example.com/api"), app("api", "b.example.com/api/")}, "apps web and api both have login.example.com/api, because"},
		"with different paths": {"{branch}.example.com", []*v1alpha1.App{app("web", "a.example.com"), app("api", "a.example.com/api")}, ""},
		"kept apart":           {"{branch}-{host}", []*v1alpha1.App{app("web", "a.example.com"), app("api", "b.example.com")}, ""},
		"the same in app.yaml": {"{branch}-{host}", []*v1alpha1.App{app("web", "a.example.com"), app("api", "a.example.com")}, ""},
		"no pattern":           {"", []*v1alpha1.App{app("web", "a.example.com"), app("api", "b.example.com")}, ""},
	} {
		var adapted []*v1alpha1.App
		for _, a := range c.apps {
			a = a.DeepCopy()
			Adapt(a, "shop", "shop-pr-login", c.pattern)
			adapted = append(adapted, a)
		}
		if got := SharedHost(c.pattern, adapted); (got == "") != (c.want == "") || !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// TestAPreviewWritesNothingToGit: it runs the image of the file. Only if the file names none does the policy choose one, as it does for the app
// that the preview is of.
func TestAPreviewWritesNothingToGit(t *testing.T) {
	chooses := &v1alpha1.ImagePolicy{SemVer: "1.x"}
	for name, c := range map[string]struct {
		reference string
		write     v1alpha1.WriteMode
		want      *v1alpha1.ImagePolicy
	}{
		"a policy that writes nothing": {"registry.example.com/web", "", chooses},
		"a tag":                        {"registry.example.com/web:1.2", v1alpha1.WriteCommit, nil},
		"a digest":                     {"registry.example.com:5000/web@sha256:0", v1alpha1.WritePullRequest, nil},
		"no tag yet, a commit":         {"registry.example.com:5000/web", v1alpha1.WriteCommit, chooses},
		"no tag yet, a pull request":   {"registry.example.com/web", v1alpha1.WritePullRequest, chooses},
	} {
		policy := *chooses
		policy.Write = c.write
		app := &v1alpha1.App{Spec: v1alpha1.AppSpec{Image: &v1alpha1.ImageSource{Reference: c.reference, Policy: &policy}}}
		Adapt(app, "shop", "shop-pr-login", "")
		if diff := cmp.Diff(c.want, app.Spec.Image.Policy); diff != "" {
			t.Errorf("%s: the policy (-want +got):\n%s", name, diff)
		}
	}
}

func TestThePreviewOfAProjectHasItsSpecWithinBounds(t *testing.T) {
	quota := func(cpu string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceRequestsCPU: resource.MustParse(cpu)}
	}
	parent := &v1alpha1.Project{Spec: v1alpha1.ProjectSpec{
		Quota: quota("8"), DeletionPolicy: v1alpha1.DeletionOrphan, Previews: &v1alpha1.ProjectPreviews{Branches: "*", Quota: quota("1")},
		Namespace: &v1alpha1.PlatformNamespace{Adopt: true}, Limits: v1alpha1.ContainerLimits{Default: quota("2")},
		Network: v1alpha1.ProjectNetwork{AllowFrom: []string{"web"}, Policies: v1alpha1.OwnNetworkPolicies},
	}}
	got := Object(parent, "shop-pr-login")
	want := v1alpha1.ProjectSpec{Quota: quota("1"), DeletionPolicy: v1alpha1.DeletionDelete, Limits: parent.Spec.Limits,
		Network: v1alpha1.ProjectNetwork{Policies: v1alpha1.OwnNetworkPolicies}}
	if diff := cmp.Diff(want, got.Spec); diff != "" || got.Name != "shop-pr-login" {
		t.Errorf("%s has (-want +got):\n%s", got.Name, diff)
	}
}

// TestARunningPreviewKeepsItsPlace: a new branch whose name is before that of a running preview does not end it.
func TestARunningPreviewKeepsItsPlace(t *testing.T) {
	young := now.Add(-time.Hour)
	got := limits(&v1alpha1.ProjectPreviews{Branches: "*", Max: 1}, "z").Choose([]Branch{{Name: "a", Hash: "1", Time: young}, {Name: "z", Hash: "1", Time: young}})
	if len(got) != 2 || got[0].Name != "z" || got[0].Missing != "" || got[1].Missing == "" {
		t.Errorf("got %+v", got)
	}
}
