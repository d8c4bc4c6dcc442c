package read

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/cmd/kubeop/call"
	"github.com/kubeop/kubeop/internal/testenv/memory"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// before is a time some minutes before noon.
func before(minutes int) metav1.Time {
	return metav1.NewTime(noon.Add(-time.Duration(minutes) * time.Minute))
}

// revision is one of a commit whose hash has one digit only.
func revision(digit string) string { return "main@sha1:" + strings.Repeat(digit, 40) }

// show runs a command at noon. The output has single spaces between its columns.
func show(t *testing.T, s *memory.Server, command func(*call.Call) *cobra.Command, args ...string) (out, complaint string, err error) {
	t.Helper()
	streams, _, stdout, stderr := genericiooptions.NewTestIOStreams()
	c := call.New(streams, clocktesting.NewFakeClock(noon))
	c.Flags.KubeConfig = &s.Kubeconfig
	made := command(c)
	made.SilenceUsage, made.SilenceErrors = true, true
	made.SetArgs(args)
	err = made.ExecuteContext(t.Context())
	return columns(stdout), stderr.String(), err
}

func columns(of *bytes.Buffer) string {
	var lines []string
	for line := range strings.Lines(of.String()) {
		if fields := strings.Fields(line); len(fields) > 0 {
			lines = append(lines, strings.Join(fields, " "))
		}
	}
	return strings.Join(lines, "\n")
}

// wantShown compares what a command shows, line by line.
func wantShown(t *testing.T, out string, err error, want ...string) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, strings.Split(out, "\n")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// brokenApp runs one commit, and failed with a newer one: its Deployment has a pod that crashes, and its Service is missing.
func brokenApp() *v1alpha1.App {
	app := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{
		Namespace: shop, Name: "web", UID: "app", CreationTimestamp: before(120), Annotations: map[string]string{
			v1alpha1.FolderAnnotation: "projects/shop/apps/web", v1alpha1.RevisionAnnotation: revision("b"), v1alpha1.AuthorAnnotation: "ann",
		}}, Spec: v1alpha1.AppSpec{Type: v1alpha1.AppHelm}}
	app.Status = v1alpha1.AppStatus{
		LastAppliedRevision: revision("a"), LastAttemptedRevision: revision("b"), URL: "shop.example.com",
		Release: &v1alpha1.ReleaseStatus{Name: "web", Revision: 3, Status: "failed", Chart: "web-1.0.0"},
		Deliveries: []v1alpha1.DeliveryRecord{
			{Revision: revision("b"), Author: "ann", StartedAt: before(30), Result: v1alpha1.DeliveryFailed, Reason: "UpgradeFailed"},
			{Revision: revision("a"), Author: "ben", StartedAt: before(90), Duration: &metav1.Duration{Duration: time.Minute}, Result: v1alpha1.DeliverySucceeded},
		},
		Inventory: v1alpha1.Inventory{Entries: []v1alpha1.InventoryEntry{{ID: shop + "_web_apps_Deployment", Version: "v1"}, {ID: shop + "_settings__ConfigMap", Version: "v1"}}},
		Refused:   &v1alpha1.Refused{Revision: revision("c"), Place: "app.yaml:5", Problem: "unknown field"},
		Held:      []string{"PersistentVolumeClaim/data"}, HeldToken: "1a2b",
	}
	app.Status.Conditions = []metav1.Condition{
		{Type: v1alpha1.StalledCondition, Status: metav1.ConditionTrue, Reason: "UpgradeFailed", Message: "it was tried three times", LastTransitionTime: before(5)},
		{Type: v1alpha1.ReadyCondition, Status: metav1.ConditionFalse, Reason: "UpgradeFailed", Message: "Deployment/web: crashes", LastTransitionTime: before(20)},
		{Type: v1alpha1.ReleasedCondition, Status: metav1.ConditionFalse, Reason: "UpgradeFailed", Message: "no", LastTransitionTime: before(20)},
		{Type: v1alpha1.SourceReadyCondition, Status: metav1.ConditionTrue, Reason: "Succeeded", LastTransitionTime: before(30)},
	}
	return app
}

// broken serves the broken app, its Deployment in progress, and events of it and of others.
func broken(t *testing.T, also ...client.Object) *memory.Server {
	t.Helper()
	event := func(name string, of string, minutes int) *corev1.Event {
		return &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: name}, Type: corev1.EventTypeWarning, Reason: "Failed", Message: name,
			LastTimestamp: before(minutes), InvolvedObject: corev1.ObjectReference{Kind: "App", Name: "web", UID: "app"}, Count: 1, Source: corev1.EventSource{Component: of}}
	}
	other := event("of-another", "", 1)
	other.InvolvedObject.UID = "another"
	replicas := int32(1)
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "web", UID: "deployment", Generation: 1, CreationTimestamp: before(60)}, Spec: appsv1.DeploymentSpec{Replicas: &replicas},
		Status: appsv1.DeploymentStatus{ObservedGeneration: 1}}
	return memory.Serve(t, append([]client.Object{brokenApp(), deployment, event("second", "", 2), event("first", "", 3), other}, also...)...)
}

func TestDescribeShowsAnAppFromItsFileToItsEvents(t *testing.T) {
	out, _, err := show(t, broken(t), Describe, "acme/shop/web")
	wantShown(t, out, err,
		"App acme/shop/web", "Created 120m ago", "Type Helm", "Declared in projects/shop/apps/web/app.yaml", "Commit main@sha1:bbbbbbbb", "Author ann",
		"Runs main@sha1:aaaaaaaa", "Tried main@sha1:bbbbbbbb", "Release web, revision 3, failed, chart web-1.0.0", "URL shop.example.com",
		"Ready False UpgradeFailed Deployment/web: crashes",
		"Steps", "SourceReady True 30m Succeeded", "Released False 20m UpgradeFailed no",
		"Also", "Stalled True 5m UpgradeFailed it was tried three times",
		"A newer version is refused", "Commit main@sha1:cccccccc", "Place app.yaml:5", "Problem unknown field",
		"Deletions that wait for a confirmation", "PersistentVolumeClaim/data",
		"Objects", "ConfigMap/settings Missing it does not exist", "Deployment/web Unhealthy not all of its pods are made yet",
		"Last deliveries", "REVISION AUTHOR STARTED TOOK RESULT", "main@sha1:bbbbbbbb ann 30m ago Failed (UpgradeFailed)", "main@sha1:aaaaaaaa ben 90m ago 1m0s Succeeded",
		"Last events", "AGE TYPE REASON OBJECT MESSAGE", "3m Warning Failed App/web first", "2m Warning Failed App/web second",
		"What to do", "kubeop confirm acme/shop/web # delete what waits for a confirmation", "kubeop logs acme/shop/web # what its pods write",
		"kubeop blame acme/shop/web # which commit broke it", "kubeop force acme/shop/web # try the same again",
	)
}

// TestDescribeNamesTheTriedRevisionOnlyIfItDoesNotRun: the same revision twice would look like two.
func TestDescribeNamesTheTriedRevisionOnlyIfItDoesNotRun(t *testing.T) {
	app := brokenApp()
	app.Status.LastAttemptedRevision = app.Status.LastAppliedRevision
	out, _, err := show(t, memory.Serve(t, app), Describe, "acme/shop/web")
	if err != nil || !strings.Contains(out, "Runs main@sha1:aaaaaaaa") || strings.Contains(out, "Tried") {
		t.Errorf("%v:\n%s", err, out)
	}
}

func TestDescribeShowsARepositoryWithItsProblems(t *testing.T) {
	repository := &v1alpha1.Repository{ObjectMeta: metav1.ObjectMeta{Name: "acme", CreationTimestamp: before(60)}, Spec: v1alpha1.RepositorySpec{URL: "https://git.example.com/acme.git"}}
	repository.Status.LastAttemptedRevision, repository.Status.LastAppliedRevision = revision("b"), revision("a")
	repository.Status.Problems = []string{"tenant.yaml:3: unknown field"}
	repository.Status.Held, repository.Status.HeldToken = []string{"app acme/shop/web"}, "1a2b"
	out, _, err := show(t, memory.Serve(t, repository), Describe, "repository", "acme")
	wantShown(t, out, err, "Repository acme", "Created 60m ago", "URL https://git.example.com/acme.git", "Newest commit main@sha1:bbbbbbbb", "Applied main@sha1:aaaaaaaa",
		"Steps", "Problems of the newest commit", "tenant.yaml:3: unknown field", "Deletions that wait for a confirmation", "app acme/shop/web",
		"What to do", "kubeop confirm repository acme # delete what waits for a confirmation")
}

func TestDescribeShowsTheRulesOfAPolicyAndItsTenants(t *testing.T) {
	policy := &v1alpha1.Policy{ObjectMeta: metav1.ObjectMeta{Name: "baseline", CreationTimestamp: before(60), Annotations: map[string]string{v1alpha1.FolderAnnotation: "policies/baseline.yaml"}}}
	policy.Spec.Default = true
	policy.Spec.Images = &v1alpha1.ImageRules{Action: v1alpha1.DenyAction, Allow: []string{"a.example.com", "b.example.com"}, RequireDigest: true}
	policy.Spec.Services = &v1alpha1.ServiceRules{Action: v1alpha1.WarnAction, Types: []string{"ClusterIP"}}
	policy.Spec.Hostnames = &v1alpha1.HostnameRules{Action: v1alpha1.AuditAction, Suffixes: []string{"example.com"}, Wildcards: true}
	policy.Spec.Classes = &v1alpha1.ClassRules{Action: v1alpha1.DenyAction, Storage: []string{"fast"}, Priority: []string{"batch", "low"}, Runtime: []string{"gvisor"}, Defaults: &v1alpha1.ClassDefaults{Gateway: "shared", Runtime: "gvisor"}}
	policy.Spec.Nodes = &v1alpha1.NodeRules{Action: v1alpha1.WarnAction, Selector: map[string]v1alpha1.LabelValue{"pool": "tenants", "disk": "ssd"},
		Tolerations: []v1alpha1.AllowedToleration{{Key: "pool", Value: "tenants", Effect: "NoSchedule"}, {Key: "gpu"}}, UserNamespaces: true}
	policy.Spec.Kinds = &v1alpha1.KindRules{Action: v1alpha1.AuditAction, Allow: []string{"apps/Deployment"}, Deny: []string{"batch/*", "Secret"}}
	policy.Spec.Metadata = &v1alpha1.MetadataRules{Action: v1alpha1.DenyAction, RequiredLabels: []string{"team"}, ForbiddenLabels: []string{"a"}, ForbiddenAnnotations: []string{"b"},
		Added: &v1alpha1.AddedMetadata{Labels: map[string]v1alpha1.LabelValue{"team": "acme", "cost": "1"}, Annotations: map[string]v1alpha1.AnnotationValue{"note": "x"}}}
	policy.Spec.Sources = &v1alpha1.SourceRules{
		Action: v1alpha1.DenyAction, Git: &v1alpha1.URLPatterns{Allow: []string{"git.example.com"}, Deny: []string{"evil.org"}},
		Helm: &v1alpha1.URLPatterns{Allow: []string{"charts.example.com"}, Deny: []string{"old.example.com"}},
		OCI:  &v1alpha1.RepositoryPatterns{Allow: []string{"ghcr.io/acme"}, Deny: []string{"ghcr.io/acme/old"}},
	}
	policy.Spec.Egress = &v1alpha1.EgressRules{CIDRs: []string{"203.0.113.0/24"}, Ports: []v1alpha1.EgressPort{{Port: 443}, {Protocol: "UDP", Port: 8000, EndPort: 8999}}}
	policy.Spec.Quota = &v1alpha1.QuotaRules{
		Max:     corev1.ResourceList{"pods": resource.MustParse("50"), "requests.cpu": resource.MustParse("1500m")},
		Default: corev1.ResourceList{"pods": resource.MustParse("20")},
	}
	most, least := resource.MustParse("10Gi"), resource.MustParse("1Gi")
	cpu := func(amount string) corev1.ResourceList { return corev1.ResourceList{"cpu": resource.MustParse(amount)} }
	policy.Spec.Limits = &v1alpha1.LimitRules{
		Max: cpu("4"), Min: cpu("10m"), Default: cpu("1"), DefaultRequest: cpu("100m"), Ratio: cpu("3"), Claims: &v1alpha1.ClaimSizes{Max: &most, Min: &least},
	}
	policy.Spec.PodSecurity = &v1alpha1.PodSecurityRules{Action: v1alpha1.WarnAction, Level: "restricted", Version: "v1.34"}
	tenant := func(name string, policies ...string) *v1alpha1.Tenant {
		return &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: before(60)}, Spec: v1alpha1.TenantSpec{Policies: policies}}
	}
	s := memory.Serve(t, policy, tenant("acme"), tenant("beta", "strict", "baseline"), tenant("rival", "strict"))
	out, _, err := show(t, s, Describe, "policy", "baseline")
	wantShown(t, out, err, "Policy baseline", "Created 60m ago", "Declared in policies/baseline.yaml", "Default yes: it holds for tenants that name no policy",
		"Rules", "images Deny allow a.example.com, b.example.com only by digest", "services Warn types ClusterIP", "hostnames Audit in example.com also with wildcards",
		"classes Deny storage fast priority batch, low runtime gvisor defaults gateway=shared, runtime=gvisor", "nodes Warn with disk=ssd, pool=tenants tolerated taints pool=tenants:NoSchedule, gpu in user namespaces", "kinds Audit allow apps/Deployment deny batch/*, Secret",
		"metadata Deny required labels team forbidden labels a forbidden annotations b",
		"sources Deny Git git.example.com no Git evil.org Helm charts.example.com no Helm old.example.com OCI ghcr.io/acme no OCI ghcr.io/acme/old", "added metadata labels cost=1, team=acme annotations note=x", "egress to 203.0.113.0/24 ports 443/TCP, 8000-8999/UDP",
		"quota at most pods=50, requests.cpu=1500m default pods=20",
		"limits at most cpu=4 at least cpu=10m default cpu=1 default request cpu=100m ratio cpu=3 claims at most 10Gi claims at least 1Gi", "podSecurity Warn level restricted version v1.34", "Tenants that are under it", "acme", "beta")
	if strings.Contains(out, "rival") {
		t.Errorf("a tenant under another policy is shown:\n%s", out)
	}
	out, _, err = show(t, s, Describe, "tenant", "beta")
	if err != nil || !strings.Contains(strings.Join(strings.Fields(out), " "), "Policies strict, baseline") {
		t.Errorf("%v:\n%s", err, out)
	}
	for code, want := range map[int]string{http.StatusForbidden: "", http.StatusInternalServerError: "listing the tenants that are under policy baseline"} {
		s.Intercept = func(w http.ResponseWriter, r *http.Request) bool {
			if strings.HasSuffix(r.URL.Path, "/tenants") {
				w.WriteHeader(code)
				return true
			}
			return false
		}
		out, _, err = show(t, s, Describe, "policy", "baseline")
		if want == "" && (err != nil || !strings.Contains(out, "Your role does not show them.")) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%d: %v:\n%s", code, err, out)
		}
	}
}

func TestDescribeShowsWhoMayUseARegistryAndWhatATenantHas(t *testing.T) {
	registry := &v1alpha1.Registry{ObjectMeta: metav1.ObjectMeta{Name: "hub", CreationTimestamp: before(60)}, Spec: v1alpha1.RegistrySpec{
		Host: "hub.example.com", Mirror: "mirror.example.com", Tenants: []string{"acme", "beta"}, Policies: []string{"strict"},
	}}
	registry.Status.Projects = 3
	tenant := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "acme", CreationTimestamp: before(60)}}
	tenant.Status.Budget = &v1alpha1.BudgetStatus{Summary: "pods 150/200"}
	tenant.Status.Guards = []v1alpha1.GuardStatus{{Name: "Network", State: v1alpha1.GuardRenderedOnly, Reason: "nobody knows"}, {Name: "Images", State: v1alpha1.GuardEnforced}}
	s := memory.Serve(t, registry, tenant)
	out, _, err := show(t, s, Describe, "registry", "hub")
	wantShown(t, out, err, "Registry hub", "Created 60m ago", "Host hub.example.com", "Mirror mirror.example.com", "Tenants acme, beta", "Policies strict", "Projects 3", "Steps")
	out, _, err = show(t, s, Describe, "tenant", "acme")
	wantShown(t, out, err, "Tenant acme", "Created 60m ago", "Projects 0", "Budget pods 150/200", "Steps", "Guards", "Network: RenderedOnly: nobody knows", "Images: Enforced")
}

func TestDescribeShowsWhoSetThePricesOfWhichMeters(t *testing.T) {
	list := &v1alpha1.PriceList{ObjectMeta: metav1.ObjectMeta{Name: "standard", CreationTimestamp: before(60), Annotations: map[string]string{v1alpha1.AuthorAnnotation: "Ann"}}}
	list.Spec = v1alpha1.PriceListSpec{Default: true, Currency: "EUR", Meters: []v1alpha1.PriceMeter{
		{Name: "cpu.requested", Unit: "core-hour", Periods: []v1alpha1.PricePeriod{{From: "2026-01-01", Until: "2026-07-01"}, {From: "2026-07-01"}}},
		{Name: "pods", Unit: "hour", Periods: []v1alpha1.PricePeriod{{From: "2026-01-01"}}},
	}}
	out, _, err := show(t, memory.Serve(t, list), Describe, "pricelist", "standard")
	wantShown(t, out, err, "PriceList standard", "Created 60m ago", "Currency EUR", "Default true", "Author Ann", "cpu.requested per core-hour, 2 periods", "pods per hour, 1 period")
}

func TestDescribeShowsWhatAClusterIsFor(t *testing.T) {
	cluster := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "west", CreationTimestamp: before(60)}}
	cluster.Spec = v1alpha1.ClusterSpec{Default: true, Server: "https://west.example.com:6443", Description: "The first one"}
	repository := &v1alpha1.Repository{ObjectMeta: metav1.ObjectMeta{Name: "platform", CreationTimestamp: before(60)}}
	repository.Status.Cluster, repository.Status.ProjectsElsewhere = "west", 3
	s := memory.Serve(t, cluster, repository)
	out, _, err := show(t, s, Describe, "cluster", "west")
	wantShown(t, out, err, "Cluster west", "Created 60m ago", "Default true", "Server https://west.example.com:6443", "Description The first one")
	out, _, err = show(t, s, Describe, "repository", "platform")
	wantShown(t, out, err, "Repository platform", "Created 60m ago", "Cluster west", "On other clusters 3 projects", "Steps")
}

func TestARuleAboutSignaturesCountsItsKeysAndIdentities(t *testing.T) {
	identities := []v1alpha1.SignerIdentity{{}, {}}
	got := signaturesOf([]v1alpha1.SignatureRule{
		{Images: []string{"a.example.com", "b.example.com"}, Keys: []string{"k"}}, {Images: []string{"c.example.com"}, Keys: []string{"k", "l"}, Identities: identities[:1]},
		{Images: []string{"d.example.com"}, Identities: identities},
	})
	want := []string{"a.example.com and b.example.com by one of 1 key", "c.example.com by one of 2 keys and 1 identity", "d.example.com by one of 2 identities"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestDescribeShowsPreviewsPlansAndPromotions(t *testing.T) {
	repository := &v1alpha1.Repository{ObjectMeta: metav1.ObjectMeta{Name: "acme", CreationTimestamp: before(60)}}
	repository.Status.Previews = []v1alpha1.PreviewStatus{
		{Project: "shop-pr-blue", PreviewOf: "shop", Branch: "blue", Revision: revision("b")},
		{Project: "shop-pr-7", PreviewOf: "shop", Branch: "red", PullRequest: 7, Message: "the pull request is from a fork"},
		{PreviewOf: "shop", Message: "the Git host is away"},
	}
	repository.Status.Plans = []v1alpha1.PullRequestPlan{{Number: 7, Revision: revision("a"), Message: "1 to update"}, {Number: 8, Message: "not planned"}}
	project := &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-acme", Name: "live", CreationTimestamp: before(60)}}
	project.Status.Promoted = []v1alpha1.Promoted{{App: "web", Changes: "image.reference: web:1 → web:2", Commit: "c0ffee"}, {App: "api", Changes: "x", Commit: "c", PullRequest: "https://git.example.com/9"}}
	project.Status.HeldPromotions = []v1alpha1.HeldPromotion{{App: "db", Token: "1a2b3c4d", Changes: "helm.version: 1 → 2"}}
	s := memory.Serve(t, repository, project)
	out, _, err := show(t, s, Describe, "repository", "acme")
	wantShown(t, out, err, "Repository acme", "Created 60m ago", "Steps", "Previews", "branch blue: shop-pr-blue: main@sha1:bbbbbbbb", "pull request 7 of red: shop-pr-7: the pull request is from a fork", "of shop: the Git host is away",
		"Plans of pull requests", "pull request 7: main@sha1:aaaaaaaa: 1 to update", "pull request 8: not planned")
	out, _, err = show(t, s, Describe, "project", "acme/live")
	wantShown(t, out, err, "Project acme/live", "Created 60m ago", "Steps", "Last promotions", "web: image.reference: web:1 → web:2: c0ffee", "api: x: https://git.example.com/9",
		"Promotions that wait for a confirmation", "1a2b3c4d db: helm.version: 1 → 2", "What to do", "kubeop confirm project acme/live # promote what waits for approval")
}

// TestDescribeShowsWhatHoldsInAProject: the rules of each policy together, whatever their actions.
func TestDescribeShowsWhatHoldsInAProject(t *testing.T) {
	project := &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-acme", Name: "live", CreationTimestamp: before(60)}}
	project.Status.Namespace = "kubeop-acme-live"
	applied := func(policy string, rules v1alpha1.PolicyRules) v1alpha1.AppliedPolicy {
		return v1alpha1.AppliedPolicy{Policy: policy, PolicyRules: rules}
	}
	rules := &v1alpha1.Guardrails{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-acme-live", Name: v1alpha1.GuardrailsName}, Spec: v1alpha1.GuardrailsSpec{
		Deny: []v1alpha1.AppliedPolicy{
			applied("standard", v1alpha1.PolicyRules{Images: &v1alpha1.ImageRules{Action: v1alpha1.DenyAction, Allow: []string{"ghcr.io"}}}),
			applied("tenant.yaml", v1alpha1.PolicyRules{Hostnames: &v1alpha1.HostnameRules{Action: v1alpha1.DenyAction, Suffixes: []string{"example.com"}}}),
		},
		Warn: []v1alpha1.AppliedPolicy{applied("new", v1alpha1.PolicyRules{Kinds: &v1alpha1.KindRules{Action: v1alpha1.WarnAction, Deny: []string{"Secret"}}})},
		Audit: []v1alpha1.AppliedPolicy{applied("standard", v1alpha1.PolicyRules{Services: &v1alpha1.ServiceRules{
			Action: v1alpha1.AuditAction, Types: []string{"ClusterIP"}, ExternalNames: []string{"db.example"}, ExternalIPs: []string{"192.0.2.0/28"}, NodePorts: []v1alpha1.NodePortRange{{Port: 30000, EndPort: 30009}, {Port: 30020}},
		}})},
		Hostnames: &v1alpha1.ClaimedHostnames{Names: []string{"shop.example.com", "www.example.com"}},
		Network: &v1alpha1.AllowedNetwork{Policies: v1alpha1.OwnNetworkPolicies, From: []map[string]string{{"use": "monitoring"}}, To: []v1alpha1.AllowedPeers{
			{Namespaces: []map[string]string{{"kubernetes.io/metadata.name": "kube-system"}}, Ports: []v1alpha1.AllowedPorts{{Protocol: "UDP", Port: 53, EndPort: 53}}},
			{Ranges: []v1alpha1.AllowedRange{{CIDR: "0.0.0.0/0", Except: []string{"10.0.0.0/8"}}}, Ports: []v1alpha1.AllowedPorts{{Protocol: "TCP", Port: 8000, EndPort: 8999}}},
		}},
		PodSecurity:        &v1alpha1.AppliedPodSecurity{PodSecurityRules: v1alpha1.PodSecurityRules{Level: "restricted", Version: "v1.34"}, Policies: []string{"standard", "tenant.yaml"}},
		PodSecurityNotices: []v1alpha1.AppliedPodSecurity{{PodSecurityRules: v1alpha1.PodSecurityRules{Action: v1alpha1.WarnAction, Level: "restricted", Version: "latest"}, Policies: []string{"new"}}},
	}}
	s := memory.Serve(t, project, rules)
	out, _, err := show(t, s, Describe, "project", "acme/live")
	wantShown(t, out, err, "Project acme/live", "Created 60m ago", "Namespace kubeop-acme-live", "Steps", "Host names", "shop.example.com", "www.example.com",
		"Pod Security", "level restricted version v1.34 by standard, tenant.yaml", "Pod Security, Warn only", "level restricted version latest by new", "What NetworkPolicies of apps may open", "from pods of namespaces with use=monitoring", "to pods of namespaces with kubernetes.io/metadata.name=kube-system at UDP 53",
		"to 0.0.0.0/0 except 10.0.0.0/8 at TCP 8000-8999", "Rules of policy new", "kinds Warn deny Secret", "Rules of policy standard", "images Deny allow ghcr.io", "services Audit types ClusterIP external names db.example external IPs 192.0.2.0/28 node ports 30000-30009, 30020",
		"Rules of the tenant's tenant.yaml", "hostnames Deny in example.com")
	for code, want := range map[int]string{http.StatusNotFound: "", http.StatusForbidden: "Rules Your role does not show them.", http.StatusInternalServerError: "reading the rules that hold in namespace kubeop-acme-live"} {
		s.Intercept = func(w http.ResponseWriter, r *http.Request) bool {
			if strings.HasSuffix(r.URL.Path, "/guardrails/"+v1alpha1.GuardrailsName) {
				w.WriteHeader(code)
				return true
			}
			return false
		}
		out, _, err := show(t, s, Describe, "project", "acme/live")
		shown := strings.Join(strings.Fields(out), " ")
		switch {
		case code == http.StatusInternalServerError && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%d: %v", code, err)
		case code != http.StatusInternalServerError && (err != nil || !strings.Contains(shown, want) || strings.Contains(shown, "Host names")):
			t.Errorf("%d: %v:\n%s", code, err, out)
		}
	}
}

func TestTreeMarksEachObject(t *testing.T) {
	out, _, err := show(t, broken(t), Tree, "acme/shop/web")
	wantShown(t, out, err, "app acme/shop/web Not ready Deployment/web: crashes",
		"├─ ConfigMap settings Missing it does not exist", "└─ Deployment web Unhealthy 60m not all of its pods are made yet")
}

func TestBlameNamesTheCommitThatFailedFirst(t *testing.T) {
	out, _, err := show(t, broken(t), Blame, "acme/shop/web")
	wantShown(t, out, err, "The newest version of the app acme/shop/web is refused", "Commit main@sha1:cccccccc", "Place app.yaml:5", "Problem unknown field",
		"The app acme/shop/web is not ready since a delivery failed", "Commit main@sha1:bbbbbbbb", "Author ann", "Started 30m ago", "Reason UpgradeFailed",
		"Before main@sha1:aaaaaaaa worked", "Now UpgradeFailed: Deployment/web: crashes")
}

func TestHistoryOfAnAppThatWasNeverDelivered(t *testing.T) {
	s := memory.Serve(t, &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "web"}})
	out, complaint, err := show(t, s, History, "acme/shop/web")
	if err != nil || out != "" || complaint != "The app acme/shop/web has no deliveries.\n" {
		t.Errorf("%v: %q, %q", err, out, complaint)
	}
	if out, _, err = show(t, s, History, "acme/shop/web", "-o", "json"); err != nil || out != "[]" {
		t.Errorf("as JSON: %v: %q", err, out)
	}
}

func TestTraceFollowsAPodToTheFileOfItsApp(t *testing.T) {
	s := broken(t, named("apps/v1", "ReplicaSet", "web-1", "", "Deployment/web"), named("v1", "Pod", "web-1-x", "", "ReplicaSet/web-1"), named("v1", "ConfigMap", "other", "", ""))
	deployment := &appsv1.Deployment{}
	if err := s.Get(t.Context(), client.ObjectKey{Namespace: shop, Name: "web"}, deployment); err != nil {
		t.Fatal(err)
	}
	deployment.Labels = map[string]string{v1alpha1.TenantLabel: "acme", v1alpha1.ProjectLabel: "shop", v1alpha1.AppLabel: "web"}
	if err := s.Update(t.Context(), deployment); err != nil {
		t.Fatal(err)
	}
	project := func(c *call.Call) *cobra.Command {
		c.Tenant, c.Project = "acme", "shop"
		return Trace(c)
	}
	out, _, err := show(t, s, project, "pods/web-1-x")
	wantShown(t, out, err, "Pod/web-1-x", "Owner ReplicaSet/web-1", "Owner Deployment/web", "App acme/shop/web",
		"Declared in projects/shop/apps/web/app.yaml", "Commit main@sha1:bbbbbbbb", "Author ann")
	out, _, err = show(t, s, project, "configmap/other")
	wantShown(t, out, err, "ConfigMap/other", "App none: no app delivered it, or an owner of it")
	for arg, fails := range map[string]string{
		"web": `"web" names no object: write KIND/NAME`, "pod/": `"pod/" names no object`, "thing/web": `the cluster has no kind "thing"`, "pod/none": "reading Pod/none",
	} {
		if _, _, err := show(t, s, project, arg); err == nil || !strings.Contains(err.Error(), fails) {
			t.Errorf("%s: the error is %v, want %q", arg, err, fails)
		}
	}
}

// TestLogsNameAPodThatARolloutRemoved; the command fails only if no pod is left.
func TestLogsNameAPodThatARolloutRemoved(t *testing.T) {
	app := brokenApp()
	app.Status.Inventory.Entries = []v1alpha1.InventoryEntry{{ID: shop + "_old__Pod", Version: "v1"}, {ID: shop + "_new__Pod", Version: "v1"}}
	running := []corev1.ContainerStatus{{Name: "web", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	earlier := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "old", UID: "old"}, Status: corev1.PodStatus{ContainerStatuses: running}}
	later := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "new", UID: "new"}, Status: corev1.PodStatus{ContainerStatuses: running}}
	s := memory.Serve(t, app, earlier, later)
	gone := "/pods/old/log"
	s.Intercept = func(w http.ResponseWriter, r *http.Request) bool {
		switch {
		case !strings.HasSuffix(r.URL.Path, "/log"):
			return false
		case strings.HasSuffix(r.URL.Path, gone):
			http.NotFound(w, r)
		default:
			_, _ = w.Write([]byte("one\n"))
		}
		return true
	}
	out, complaint, err := show(t, s, Logs, "acme/shop/web")
	wantShown(t, out, err, "new web | one")
	if !strings.Contains(complaint, "reading the log of old: ") {
		t.Errorf("nothing names the pod that is gone: %q", complaint)
	}
	gone = "/log"
	if _, _, err := show(t, s, Logs, "acme/shop/web"); err == nil || err.Error() != "all pods, or their containers, were removed before their logs could be read; run the command again" {
		t.Errorf("all pods are gone: %v", err)
	}
}

// TestLogsHaveTheirPodAndContainerBeforeEachLine, of the containers that have begun.
func TestLogsHaveTheirPodAndContainerBeforeEachLine(t *testing.T) {
	app := brokenApp()
	app.Status.Inventory.Entries = []v1alpha1.InventoryEntry{{ID: shop + "_job__Pod", Version: "v1"}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "job", UID: "pod"}}
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "web", State: running, RestartCount: 1}, {Name: "side", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}}}
	s := memory.Serve(t, app, pod)
	var asked []string
	s.Intercept = func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/pods/job/log") {
			return false
		}
		asked = append(asked, r.URL.RawQuery)
		_, err := w.Write([]byte("one\ntwo\n"))
		return err == nil
	}
	out, _, err := show(t, s, Logs, "acme/shop/web", "--since", "1m", "--previous")
	wantShown(t, out, err, "job web | one", "job web | two")
	if diff := cmp.Diff([]string{"container=web&previous=true&sinceSeconds=60&tailLines=20"}, asked); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	for _, tail := range []string{"0", "-1"} {
		if _, _, err := show(t, s, Logs, "acme/shop/web", "--tail", tail); err != nil {
			t.Errorf("--tail %s: %v", tail, err)
		}
	}
	if diff := cmp.Diff([]string{"container=web&tailLines=0", "container=web"}, asked[1:]); diff != "" {
		t.Errorf("requests with --tail (-want +got):\n%s", diff)
	}
	if _, _, err := show(t, s, Logs, "acme/shop/web", "-c", "side"); err == nil || !strings.Contains(err.Error(), "the app acme/shop/web has no pods with such containers") {
		t.Errorf("a container that has not begun: %v", err)
	}
	s.Intercept = func(w http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/log") {
			http.Error(w, "no", http.StatusForbidden)
			return true
		}
		return false
	}
	if _, complaint, err := show(t, s, Logs, "acme/shop/web"); err == nil || err.Error() != "1 of 1 logs could not be read to the end" || !strings.Contains(complaint, "reading the log of job") {
		t.Errorf("a log that is refused: %v, %q", err, complaint)
	}
	s.Intercept = func(w http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/pods/job") {
			http.Error(w, "out of order", http.StatusBadRequest)
			return true
		}
		return false
	}
	if _, _, err := show(t, s, Logs, "acme/shop/web"); err == nil || !strings.Contains(err.Error(), "reading Pod/job") {
		t.Errorf("a pod that cannot be read: %v", err)
	}
}
