package controllers

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/hostname"
)

// reserve claims host names for the project shop, as an administrator, and waits until the API server knows. The claims are deleted when the test ends.
func (n *team) reserve(names ...string) {
	n.t.Helper()
	slices.Sort(names)
	names = slices.DeleteFunc(slices.Compact(names), func(name string) bool { return name == "" })
	for _, name := range names {
		claim := n.hostClaim(name, "shop")
		n.create(claim)
		n.t.Cleanup(func() { _ = n.admin.Delete(n.t.Context(), claim) })
	}
	n.lists(names...)
}

// hostClaim is a claim for a project, as a person writes it.
func (n *team) hostClaim(name, project string) *v1alpha1.HostnameClaim {
	return &v1alpha1.HostnameClaim{
		ObjectMeta: metav1.ObjectMeta{Name: hostname.ClaimName(name)}, Spec: v1alpha1.HostnameClaimSpec{Hostname: name, Tenant: n.name, Project: project},
	}
}

// lists waits until the Guardrails of the project shop have names.
func (n *team) lists(names ...string) {
	n.t.Helper()
	n.eventually(func() error {
		rules := &v1alpha1.Guardrails{}
		if err := n.admin.Get(n.t.Context(), client.ObjectKey{Namespace: n.namespace(), Name: v1alpha1.GuardrailsName}, rules); err != nil {
			return err
		}
		for _, name := range names {
			if rules.Spec.Hostnames == nil || !slices.Contains(rules.Spec.Hostnames.Names, name) {
				return fmt.Errorf("%s is not among the host names %+v", name, rules.Spec.Hostnames)
			}
		}
		return nil
	})
}

// holder waits until a host name has a claim, and returns its tenant and project; "" for none.
func (n *team) holder(name string) string {
	n.t.Helper()
	claim := &v1alpha1.HostnameClaim{}
	err := n.admin.Get(n.t.Context(), client.ObjectKey{Name: hostname.ClaimName(name)}, claim)
	if apierrors.IsNotFound(err) {
		return ""
	}
	if err != nil {
		n.t.Fatal(err)
	}
	return claim.Spec.Tenant + "/" + claim.Spec.Project
}

// heldBy waits until a host name has this holder.
func (n *team) heldBy(name, want string) {
	n.t.Helper()
	n.eventually(func() error {
		if got := n.holder(name); got != want {
			return fmt.Errorf("host %s is of %q, want %q", name, got, want)
		}
		return nil
	})
}

// hosted is a Raw app of the project shop with an Ingress of its name.
func hosted(app, host string) map[string]string {
	return map[string]string{"projects/shop/apps/" + app + "/app.yaml": "apiVersion: paas.kubeop.io/v1alpha1\nkind: App\nmetadata: {name: " + app +
		"}\nspec: {type: Raw, raw: {manifests: [" + ingressOf(app, host) + "]}}\n"}
}

// ingressOf is an Ingress with hosts.
func ingressOf(name string, hosts ...string) string {
	var rules []string
	for _, host := range hosts {
		rules = append(rules, "{host: '"+host+"', http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: a, port: {number: 80}}}}]}}")
	}
	return "{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: " + name + "}, spec: {rules: [" + strings.Join(rules, ", ") + "]}}"
}

// silentAbout fails if an object that a tenant can read, or an event in its namespaces, has a text.
func (n *team) silentAbout(text string) {
	n.t.Helper()
	for _, list := range []client.ObjectList{&v1alpha1.AppList{}, &v1alpha1.ProjectList{}, &v1alpha1.GuardrailsList{}, &eventsv1.EventList{}} {
		for _, namespace := range []string{v1alpha1.HomeNamespace(n.name), n.namespace()} {
			if err := n.admin.List(n.t.Context(), list, client.InNamespace(namespace)); err != nil {
				n.t.Fatal(err)
			}
			all, err := json.Marshal(list)
			if err != nil {
				n.t.Fatal(err)
			}
			if strings.Contains(string(all), text) {
				n.t.Errorf("a %T in %s has %q", list, namespace, text)
			}
		}
	}
}

// TestTwoTenantsRaceForHosts: each host goes to exactly one, the other reads no name, and gets it within seconds of when it becomes free.
func TestTwoTenantsRaceForHosts(t *testing.T) {
	t.Parallel()
	one, two := teamOf(t, "raceone"), teamOf(t, "racetwo")
	const hosts = 6
	for _, n := range []*team{one, two} {
		n.push(shopFiles("shop", "first"))
		n.ready(n.app("shop", "first"))
	}
	files := func(of func(app, host string) map[string]string) map[string]string {
		all := map[string]string{}
		for i := range hosts {
			for path, text := range of(fmt.Sprint("app", i), fmt.Sprintf("h%d.race.example", i)) {
				all[path] = text
			}
		}
		return all
	}
	pushed := make(chan struct{})
	go func() { one.push(files(hosted)); close(pushed) }()
	two.push(files(hosted))
	<-pushed
	var lost []int
	for i := range hosts {
		name, app := fmt.Sprintf("h%d.race.example", i), fmt.Sprint("app", i)
		n := map[*team]*v1alpha1.App{one: one.app("shop", app), two: two.app("shop", app)}
		one.eventually(func() error {
			var states []string
			for of, app := range n {
				if err := of.admin.Get(t.Context(), client.ObjectKeyFromObject(app), app); err != nil {
					return err
				}
				states = append(states, of.name+" "+conditions.GetReason(app, v1alpha1.AllowedCondition)+" "+conditions.GetReason(app, v1alpha1.AppliedCondition))
			}
			slices.Sort(states)
			if want := []string{"raceone NotAllowed Progressing", "racetwo Succeeded Succeeded"}; slices.Equal(states, want) {
				lost = append(lost, i)
				return nil
			}
			if want := []string{"raceone Succeeded Succeeded", "racetwo NotAllowed Progressing"}; slices.Equal(states, want) {
				return nil
			}
			return fmt.Errorf("%s: %v", name, states)
		})
		loser, winner := two, one
		if slices.Contains(lost, i) {
			loser, winner = one, two
		}
		want := "Ingress/" + app + " has the host " + name + ", which another tenant has; choose another one in Git, or ask an administrator of the cluster, " +
			"to whom kubectl get hostnameclaims shows which tenant has it"
		if got := conditions.GetMessage(n[loser], v1alpha1.AllowedCondition); got != want {
			t.Errorf("the loser reads %q, want %q", got, want)
		}
		if got := one.holder(name); got != winner.name+"/shop" {
			t.Errorf("%s is of %s, but the app of %s is delivered", name, got, winner.name)
		}
	}
	one.silentAbout("racetwo")
	two.silentAbout("raceone")
	t.Logf("of %d hosts one has %d", hosts, hosts-len(lost))

	// The apps of the winners take other hosts, and those of the losers get these.
	for _, n := range []*team{one, two} {
		changed := map[string]string{}
		var waiting []*v1alpha1.App
		other := map[*team]*team{one: two, two: one}[n]
		for i := range hosts {
			if slices.Contains(lost, i) == (n == two) {
				maps.Copy(changed, hosted(fmt.Sprint("app", i), fmt.Sprintf("h%d.%s.example", i, n.name)))
				waiting = append(waiting, other.app("shop", fmt.Sprint("app", i)))
			}
		}
		if len(changed) == 0 {
			continue
		}
		n.push(changed)
		began := time.Now()
		for _, app := range waiting {
			other.until(app, v1alpha1.AppliedCondition, metav1.ConditionTrue, "")
		}
		t.Logf("%s has %d hosts of %s after %s", other.name, len(waiting), n.name, time.Since(began).Round(time.Millisecond))
		if took := time.Since(began); took > 45*time.Second {
			t.Errorf("it took %s", took)
		}
	}
}

// TestAProjectReadsWhichOtherOneOfItsTenantHasAHost, and has the host once the other lets go of it. A second reconcile writes nothing.
func TestAProjectReadsWhichOtherOneOfItsTenantHasAHost(t *testing.T) {
	n := newTeam(t, "siblings")
	n.push(map[string]string{"projects/shop/project.yaml": fmt.Sprintf(projectFile, "shop"), "projects/blog/project.yaml": fmt.Sprintf(projectFile, "blog")})
	n.push(hosted("web", "www.siblings.example"))
	web := n.app("shop", "web")
	n.until(web, v1alpha1.AppliedCondition, metav1.ConditionTrue, "")
	blog := hosted("web", "www.siblings.example")["projects/shop/apps/web/app.yaml"]
	n.push(map[string]string{"projects/blog/apps/web/app.yaml": blog})
	theirs := n.app("blog", "web")
	n.states(theirs, v1alpha1.AllowedCondition, metav1.ConditionFalse,
		"Ingress/web has the host www.siblings.example, which project shop of this tenant has; remove it there, or choose another one, in Git")

	claim, rules := &v1alpha1.HostnameClaim{}, &v1alpha1.Guardrails{}
	versions := func() (all [2]string) {
		if err := errors.Join(n.admin.Get(t.Context(), client.ObjectKey{Name: "www.siblings.example"}, claim),
			n.admin.Get(t.Context(), client.ObjectKey{Namespace: n.namespace(), Name: v1alpha1.GuardrailsName}, rules)); err != nil {
			t.Fatal(err)
		}
		return [2]string{claim.ResourceVersion, rules.ResourceVersion}
	}
	before := versions()
	n.reconcile(web, theirs, n.project("shop"))
	if after := versions(); after != before {
		t.Errorf("a second reconcile wrote: %v, then %v", before, after)
	}

	n.push(hosted("web", "other.siblings.example"))
	n.until(theirs, v1alpha1.AppliedCondition, metav1.ConditionTrue, "")
	n.heldBy("www.siblings.example", "siblings/blog")
	n.heldBy("other.siblings.example", "siblings/shop")
	n.push(map[string]string{"projects/blog": "-"})
	n.heldBy("www.siblings.example", "")
	n.push(map[string]string{"projects/shop/apps/web": "-"})
	n.heldBy("other.siblings.example", "")
}

// TestTheAPIServerAcceptsOnlyHostsThatAProjectHas, from accounts and people, and lets an update keep what it had.
func TestTheAPIServerAcceptsOnlyHostsThatAProjectHas(t *testing.T) {
	n, bot := limited(t, "doorkept")
	n.serveRoutes()
	n.own(v1alpha1.Owner{Kind: "User", Name: "doorkept-lead", Role: "admin"})
	deployer, jane, lead := n.as("system:serviceaccount:"+n.namespace()+":kubeop-deployer"), n.as("jane-of-doorkept"), n.as("doorkept-lead")
	create := func(by client.Client, object string) func() error {
		return func() error { return by.Create(t.Context(), n.object(n.namespace(), object), client.DryRunAll) }
	}
	const rest = "which is not among the host names that this project has by HostnameClaims: none. Deliver it with an app in Git, or ask an administrator of the cluster to claim the name"
	route := "{apiVersion: gateway.networking.k8s.io/v1, kind: %s, metadata: {name: x}, spec: {%s}}"
	for name, by := range map[string]client.Client{"an account": bot, "the deployer": deployer, "a person": jane} {
		t.Log(name)
		n.denied(create(by, ingressOf("x", "www.doorkept.example")), "Hostnames: Ingress/x has the host www.doorkept.example, "+rest)
		n.denied(create(by, ingressOf("x", "")), "Hostnames: Ingress/x serves every host name")
		n.denied(create(by, "{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: x}, spec: {defaultBackend: {service: {name: a, port: {number: 80}}}}}"), "serves every host name")
		n.denied(create(by, fmt.Sprintf(route, "HTTPRoute", "hostnames: [www.doorkept.example]")), "Hostnames: HTTPRoute/x has the host www.doorkept.example, "+rest)
		n.denied(create(by, fmt.Sprintf(route, "HTTPRoute", "")), "Hostnames: HTTPRoute/x serves every host name")
	}
	n.denied(create(bot, fmt.Sprintf(route, "Gateway", "listeners: [{protocol: HTTP, hostname: www.doorkept.example}]")), "has the host www.doorkept.example")
	n.denied(create(bot, fmt.Sprintf(route, "Gateway", "listeners: [{protocol: HTTP}]")), "serves every host name")

	// What was there before may be changed in other fields, and serves nothing more.
	old := n.object(n.namespace(), ingressOf("old", "old.doorkept.example"))
	if err := n.masterful(operatorAccount).Create(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	patch := func(text string) func() error {
		return func() error {
			return bot.Patch(t.Context(), old.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(text)), client.DryRunAll)
		}
	}
	n.passes(patch(`{"metadata":{"labels":{"a":"b"}}}`))
	n.denied(patch(`{"spec":{"rules":[{"host":"old.doorkept.example"},{"host":"new.doorkept.example"}]}}`), "has the host new.doorkept.example")

	n.reserve("www.doorkept.example", "*.wild.doorkept.example")
	for _, object := range []string{
		ingressOf("x", "www.doorkept.example"), ingressOf("x", "*.wild.doorkept.example"), fmt.Sprintf(route, "HTTPRoute", "hostnames: [WWW.doorkept.example.]"),
		fmt.Sprintf(route, "Gateway", "listeners: [{protocol: HTTPS, hostname: www.doorkept.example}, {protocol: TCP}]"),
	} {
		n.passes(create(bot, object))
	}
	n.denied(create(bot, ingressOf("x", "a.wild.doorkept.example")), "Hostnames: Ingress/x has the host a.wild.doorkept.example, which is not among the host names that this project has "+
		"by HostnameClaims: *.wild.doorkept.example, www.doorkept.example. ")

	// Tenants neither read nor write claims, and read in the Guardrails what they have.
	n.passes(func() error {
		return lead.Get(t.Context(), client.ObjectKey{Namespace: n.namespace(), Name: v1alpha1.GuardrailsName}, &v1alpha1.Guardrails{})
	})
	mine := n.hostClaim("www.doorkept.example", "shop")
	for name, c := range map[string]client.Client{"the lead": lead, "an account with all rights in the namespace": bot, "the deployer": deployer} {
		for verb, err := range map[string]error{
			"list": c.List(t.Context(), &v1alpha1.HostnameClaimList{}), "get": c.Get(t.Context(), client.ObjectKeyFromObject(mine), &v1alpha1.HostnameClaim{}),
			"create": c.Create(t.Context(), n.hostClaim("mine.doorkept.example", "shop"), client.DryRunAll), "delete": c.Delete(t.Context(), mine.DeepCopy(), client.DryRunAll),
		} {
			if !apierrors.IsForbidden(err) {
				t.Errorf("%s may %s claims: %v", name, verb, err)
			}
		}
	}
}

// TestAdministratorsReserveHosts: a claim that a person made is for its project only, cannot be changed, and stays.
func TestAdministratorsReserveHosts(t *testing.T) {
	n := newTeam(t, "reserved")
	n.push(map[string]string{"projects/shop/project.yaml": fmt.Sprintf(projectFile, "shop"), "projects/blog/project.yaml": fmt.Sprintf(projectFile, "blog")})
	n.ready(n.project("shop"), n.project("blog"))
	n.reserve("www.reserved.example")
	blog := hosted("web", "www.reserved.example")["projects/shop/apps/web/app.yaml"]
	n.push(map[string]string{"projects/blog/apps/web/app.yaml": blog})
	n.states(n.app("blog", "web"), v1alpha1.AllowedCondition, metav1.ConditionFalse, "which project shop of this tenant has")
	n.push(hosted("web", "www.reserved.example"))
	n.until(n.app("shop", "web"), v1alpha1.AppliedCondition, metav1.ConditionTrue, "")
	n.push(map[string]string{"projects/shop/apps/web": "-"})
	n.gone(n.app("shop", "web"))
	n.reconcile(n.project("shop"))
	if got := n.holder("www.reserved.example"); got != "reserved/shop" {
		t.Errorf("the claim of the administrator is of %q", got)
	}

	// What the definition refuses.
	changed := n.hostClaim("www.reserved.example", "shop")
	if err := n.admin.Get(t.Context(), client.ObjectKeyFromObject(changed), changed); err != nil {
		t.Fatal(err)
	}
	changed.Spec.Project = "blog"
	if err := n.admin.Update(t.Context(), changed); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "a claim cannot be changed") {
		t.Errorf("a claim was changed: %v", err)
	}
	for name, host := range map[string]string{
		"a.reserved.example": "b.reserved.example", "a.reserved.example.": "a.reserved.example.", "wildcard--of.reserved.example": "wildcard--of.reserved.example",
		"c.reserved.example": "*.reserved.example", "d.reserved.example": "D.reserved.example", "e.reserved.example": "é.reserved.example", "f.reserved.example": "*.*.reserved.example",
	} {
		claim := n.hostClaim(host, "shop")
		claim.Name = name
		if err := n.admin.Create(t.Context(), claim, client.DryRunAll); !apierrors.IsInvalid(err) {
			t.Errorf("a claim %s of %s was created: %v", name, host, err)
		}
	}
	n.passes(func() error {
		return n.admin.Create(t.Context(), n.hostClaim("*.reserved.example", "shop"), client.DryRunAll)
	})
}

// TestAHostStaysClaimedWhileAnythingServesIt, also something that no app delivers. A claim that a project which is gone left is free.
func TestAHostStaysClaimedWhileAnythingServesIt(t *testing.T) {
	n, bot := limited(t, "lingering")
	left := n.hostClaim("www.lingering.example", "shop")
	left.Spec.Tenant, left.Labels = "ghost", map[string]string{v1alpha1.ManagedByLabel: v1alpha1.FieldManager}
	n.create(left)
	byHand := n.hostClaim("hand.lingering.example", "shop")
	byHand.Spec.Tenant = "ghost"
	n.create(byHand)
	n.push(hosted("hand", "hand.lingering.example"))
	n.states(n.app("shop", "hand"), v1alpha1.AllowedCondition, metav1.ConditionFalse, "has the host hand.lingering.example, which an administrator of the cluster keeps for a project that does not exist")
	n.push(hosted("site", "www.lingering.example"))
	site := n.app("shop", "site")
	n.until(site, v1alpha1.AppliedCondition, metav1.ConditionTrue, "")
	n.heldBy("www.lingering.example", "lingering/shop")
	if err := n.admin.Delete(t.Context(), byHand); err != nil {
		t.Fatal(err)
	}
	n.until(n.app("shop", "hand"), v1alpha1.AppliedCondition, metav1.ConditionTrue, "")

	own := n.object(n.namespace(), ingressOf("own", "www.lingering.example"))
	n.passes(func() error { return bot.Create(t.Context(), own.DeepCopy()) })
	n.push(map[string]string{"projects/shop/apps/site": "-"})
	n.gone(n.app("shop", "site"))
	n.reconcile(n.project("shop"))
	time.Sleep(3 * time.Second)
	n.reconcile(n.project("shop"))
	if got := n.holder("www.lingering.example"); got != "lingering/shop" {
		t.Errorf("the host that an Ingress serves is of %q", got)
	}
	n.lists("www.lingering.example")
	if err := bot.Delete(t.Context(), own.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	n.reconcile(n.project("shop"))
	n.heldBy("www.lingering.example", "")
	n.denied(func() error { return bot.Create(t.Context(), own.DeepCopy(), client.DryRunAll) }, "has the host www.lingering.example")
}

// TestAWildcardOfOneTenantKeepsOthersOut, and the reverse. Within a tenant both can be.
func TestAWildcardOfOneTenantKeepsOthersOut(t *testing.T) {
	t.Parallel()
	one, two := teamOf(t, "wildone"), teamOf(t, "wildtwo")
	for _, n := range []*team{one, two} {
		n.push(map[string]string{"projects/shop/project.yaml": fmt.Sprintf(projectFile, "shop")})
		n.ready(n.project("shop"))
	}
	one.push(hosted("all", "*.wild.example"))
	one.until(one.app("shop", "all"), v1alpha1.AppliedCondition, metav1.ConditionTrue, "")
	two.push(hosted("below", "a.b.wild.example"))
	two.states(two.app("shop", "below"), v1alpha1.AllowedCondition, metav1.ConditionFalse, "Ingress/below has the host a.b.wild.example, which another tenant has with a wildcard; choose another one")
	two.push(hosted("single", "c.tame.example"))
	two.until(two.app("shop", "single"), v1alpha1.AppliedCondition, metav1.ConditionTrue, "")
	one.push(hosted("more", "*.tame.example"))
	one.states(one.app("shop", "more"), v1alpha1.AllowedCondition, metav1.ConditionFalse, "Ingress/more has the host *.tame.example, which has names that another tenant has; choose another one")
	for _, name := range []string{"a.b.wild.example", "*.tame.example"} {
		one.heldBy(name, "")
	}
	one.push(hosted("inside", "x.wild.example"))
	one.until(one.app("shop", "inside"), v1alpha1.AppliedCondition, metav1.ConditionTrue, "")
	two.push(hosted("again", "*.inner.wild.example"))
	two.states(two.app("shop", "again"), v1alpha1.AllowedCondition, metav1.ConditionFalse, "which another tenant has with a wildcard")

	one.push(map[string]string{"projects/shop/apps/all": "-"})
	for _, app := range []string{"below", "again"} {
		two.until(two.app("shop", app), v1alpha1.AppliedCondition, metav1.ConditionTrue, "")
	}
	two.push(map[string]string{"projects/shop/apps/single": "-"})
	one.until(one.app("shop", "more"), v1alpha1.AppliedCondition, metav1.ConditionTrue, "")
	one.silentAbout("wildtwo")
	two.silentAbout("wildone")
}

// TestTheHostsOfAChartAreClaimed before anything of it is installed, and free again after it was uninstalled.
func TestTheHostsOfAChartAreClaimed(t *testing.T) {
	t.Parallel()
	one, two := teamOf(t, "chartone"), teamOf(t, "charttwo")
	const template = `apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: {{ .Release.Name }}}
spec: {rules: [{host: {{ .Values.host }}, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: a, port: {number: 80}}}}]}}]}
`
	chart := func(host string) map[string]string {
		files := shopFiles("shop")
		const app = "projects/shop/apps/released/"
		files[app+"app.yaml"] = strings.Replace(helmFile, "greeting: hello", "host: "+host, 1)
		files[app+"chart/Chart.yaml"], files[app+"chart/templates/ingress.yaml"] = chartFile, template
		return files
	}
	one.push(chart("www.charted.example"))
	installed, refused := one.app("shop", "released"), two.app("shop", "released")
	one.until(installed, v1alpha1.ReleasedCondition, metav1.ConditionTrue, "")
	one.heldBy("www.charted.example", "chartone/shop")
	if installed.Status.Failures != 0 {
		t.Errorf("the first try failed: %d failures", installed.Status.Failures)
	}
	two.push(chart("www.charted.example"))
	two.states(refused, v1alpha1.ReleasedCondition, metav1.ConditionFalse, "Ingress/released has the host www.charted.example, which another tenant has; choose another one in Git")
	if reason := conditions.GetReason(refused, v1alpha1.ReleasedCondition); reason != v1alpha1.NotAllowedReason {
		t.Errorf("the reason is %s", reason)
	}
	two.silentAbout("chartone")

	one.push(chart("new.charted.example"))
	two.until(refused, v1alpha1.ReleasedCondition, metav1.ConditionTrue, "")
	one.heldBy("www.charted.example", "charttwo/shop")
	one.heldBy("new.charted.example", "chartone/shop")
	one.push(map[string]string{"projects/shop/apps/released": "-"})
	one.heldBy("new.charted.example", "")
}
