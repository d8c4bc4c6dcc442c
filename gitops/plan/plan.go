// Package plan decides about objects that a commit no longer declares: which are deleted at once, and which deletions are held until a
// person confirms them, because other objects or data would be lost, too. It reads nothing: the caller counts what an object contains.
package plan

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/gitops/identity"
)

// manyApps is how many apps of a tenant one commit may remove without a confirmation, whatever share of the tenant's apps that is.
const manyApps = 5

// Loss is an object that the commit no longer declares, and what its deletion affects.
type Loss struct {
	Ref identity.Ref
	UID string
	// Namespaces are the namespaces that belong to the object.
	Namespaces []string
	// Claims are the claims with data in these namespaces.
	Claims []Claim
	// Apps and Pods are their numbers in these namespaces; 0 for an App.
	Apps, Pods int
	// Tenants is how many tenants are under the object, if it is a Policy.
	Tenants int
	// Projects is how many projects have the credentials of the object, if it is a Registry.
	Projects int
	// Second: the object is a PriceList with spec.default, and another one in the cluster has it, too.
	Second bool
	// Cluster is the name of the cluster on which the commit places the object, which has this one no longer; "" if the commit does not declare it.
	Cluster string
	// Preview: the object belongs to a preview, which goes with its branch. Only its data is a reason to ask.
	Preview bool
}

// Claim is a PersistentVolumeClaim that is bound to a volume.
type Claim struct {
	Namespace, Name, UID string
	// Size as Kubernetes writes it, such as "10Gi".
	Size string
	// Goes: the policy of the claim is Delete, so a confirmed deletion deletes the claim with its data.
	Goes bool
}

// Commit is a commit, with the objects that it removes.
type Commit struct {
	// Revision as "branch@sha1:<commit>".
	Revision string
	Losses   []Loss
	// Apps is the number of apps of each tenant that loses some, including the lost ones.
	Apps map[string]int
	// Emptied: the commit declares no object at all. Foreign: it declares none of the existing objects. Misplaced is a file that looks like
	// a declaration moved to a wrong folder; "" for none.
	Emptied, Foreign bool
	Misplaced        string
	// Confirmed is what a person confirmed before, as the last Verdict has it.
	Confirmed Confirmed
}

// Confirmed is what a person confirmed of a revision, so that deletions that failed halfway need no other confirmation. The zero value is nothing.
type Confirmed struct {
	revision string
	ids      []string
}

// Verdict says which objects are deleted, and which deletions are held.
type Verdict struct {
	// Go are the objects to delete, in this order: Apps, then Projects, then Tenants, then Policies, Registries, PriceLists and Clusters.
	Go []Loss
	// Held are the objects whose deletion waits for a confirmation. Why is the reason, Lines list the objects and their claims, and Token is
	// the value that confirms the deletion.
	Held  []Loss
	Why   string
	Lines []string
	Token string
	// Confirmed is what was confirmed, now or before.
	Confirmed Confirmed
}

// Weigh decides what is deleted and what is held. An object inside another removed object shares the decision about that object. The
// confirmation is the Token of an earlier verdict, or "". It is valid only for the same commit and the same list of UIDs, and what is left of
// them later. So it is valid only once: an object that is created again has another UID.
func (c Commit) Weigh(confirmation string) Verdict {
	var v Verdict
	if c.Confirmed.revision == c.Revision {
		v.Confirmed = c.Confirmed
	}
	outer := c.outermost()
	for _, loss := range outer {
		if why := c.doubt(loss); why != "" {
			v.Held = append(v.Held, loss)
			v.Why = cmp.Or(v.Why, why)
			continue
		}
		v.Go = append(v.Go, loss)
	}
	if len(v.Held) == 0 {
		return v
	}
	ids := identify(v.Held)
	if v.Token = c.token(ids); confirmation == v.Token {
		v.Confirmed = Confirmed{c.Revision, ids}
	}
	if !slices.ContainsFunc(ids, func(id string) bool { return !slices.Contains(v.Confirmed.ids, id) }) {
		v.Go = outer
		v.Held, v.Why = nil, ""
		return v
	}
	v.Lines = lines(v.Held)
	return v
}

// Next returns the objects of Go that are deleted now; the others have to wait. leaving: others that left the tree are being deleted already. Policies, Registries
// and PriceLists wait until all else is gone, because what is being deleted may still run, under them. PriceLists wait for what is held, too: it may run for long
// and cost something. Policies and Registries that something held is under are held themselves. A second default PriceList does not wait, because there is
// no default one while there are two. For the same reason, Clusters do not wait.
func (v Verdict) Next(leaving bool) []Loss {
	runs := func(l Loss) bool { return !l.Ref.OneFile() }
	leaving = leaving || slices.ContainsFunc(v.Go, runs)
	held := slices.ContainsFunc(v.Held, runs)
	return slices.DeleteFunc(slices.Clone(v.Go), func(l Loss) bool {
		if runs(l) || l.Second || l.Ref.Cluster != "" {
			return false
		}
		return leaving || held && l.Ref.PriceList != ""
	})
}

// outermost returns the losses without those that are deleted with their project or tenant, sorted: Apps, then Projects, then Tenants, then Policies,
// Registries and PriceLists.
func (c Commit) outermost() []Loss {
	going := map[identity.Ref]bool{}
	for _, l := range c.Losses {
		going[l.Ref] = true
	}
	inside := func(l Loss) bool {
		parent := l.Ref.Parent()
		return going[parent] || going[parent.Parent()]
	}
	outer := slices.DeleteFunc(slices.Clone(c.Losses), inside)
	slices.SortFunc(outer, func(a, b Loss) int {
		return cmp.Or(cmp.Compare(rank(a.Ref), rank(b.Ref)), strings.Compare(a.Ref.Path(), b.Ref.Path()))
	})
	return outer
}

func rank(r identity.Ref) int {
	switch {
	case r.App != "":
		return 0
	case r.Project != "":
		return 1
	case r.OneFile():
		return 3
	}
	return 2
}

// doubt says why the removal of an object may be a mistake, such as a branch emptied by a bad merge, a path that moved, or a script that
// removed too much; "" if it is not doubtful. Such a commit is valid, so no other check stops it, and deleted data cannot be restored.
func (c Commit) doubt(l Loss) string {
	switch gone := c.appsThatGo(l.Ref.Tenant); {
	case c.Emptied:
		return "it declares nothing any more"
	case c.Foreign:
		return "it declares nothing of what runs, as another repository would"
	case l.Cluster != "": // What it has here is not moved, so a person says when the other cluster is ready.
		return fmt.Sprintf("it places %s on cluster %s, and nothing of what it has here goes along", l.placed(), l.Cluster)
	case l.Ref.Kind() == v1alpha1.TenantKind:
		return "it removes a tenant"
	case l.Tenants > 0: // Their apps may have more without it.
		return "it removes a policy that " + l.under()
	case l.Projects > 0: // Their pods could no longer pull images.
		return "it removes a registry whose credentials " + l.used()
	case len(l.Claims) > 0:
		return "it removes a project that holds data"
	case l.Preview:
		return ""
	case gone > manyApps && 5*gone > c.Apps[l.Ref.Tenant]:
		return fmt.Sprintf("it removes %d of %d apps of tenant %s", gone, c.Apps[l.Ref.Tenant], l.Ref.Tenant)
	case c.Misplaced != "":
		return fmt.Sprintf("nothing is read from %s, which may be what is missing", c.Misplaced)
	}
	return ""
}

// appsThatGo counts the apps of a tenant that the commit removes, including those in removed projects.
func (c Commit) appsThatGo(tenant string) int {
	n := 0
	for _, l := range c.outermost() {
		switch {
		case l.Ref.Tenant != tenant || l.Preview:
		case l.Ref.App != "":
			n++
		default:
			n += l.Apps
		}
	}
	return n
}

// identify returns what a person confirms, sorted: the UIDs of objects and claims, the namespaces, and the number of apps. It does not include the
// number of pods, which changes without anyone's action.
func identify(held []Loss) (ids []string) {
	for _, l := range held {
		ids = append(ids, fmt.Sprint(l.UID, slices.Sorted(slices.Values(l.Namespaces)), l.Apps))
		for _, claim := range l.Claims {
			ids = append(ids, fmt.Sprintf("%s %t", claim.UID, claim.Goes))
		}
	}
	slices.Sort(ids)
	return ids
}

// token identifies the commit and the list that a person confirms.
func (c Commit) token(ids []string) string {
	sum := sha256.Sum256([]byte(c.Revision + "\n" + strings.Join(ids, "\n")))
	_, commit, _ := strings.Cut(c.Revision, ":")
	return commit[:min(len(commit), 12)] + "-" + hex.EncodeToString(sum[:8])
}

// lines list what is held: first the claims, then the objects, Policies, Registries and PriceLists before Tenants before Projects before Apps.
func lines(held []Loss) []string {
	var data, objects []string
	for _, l := range slices.Backward(held) {
		for _, claim := range l.Claims {
			outcome := "stays, with its namespace"
			if claim.Goes {
				outcome = "is deleted with its data"
			}
			data = append(data, fmt.Sprintf("PersistentVolumeClaim %s/%s: %s, %s", claim.Namespace, claim.Name, claim.Size, outcome))
		}
		objects = append(objects, l.Ref.String()+l.below())
	}
	return append(data, objects...)
}

// placed names an object that is on another cluster.
func (l Loss) placed() string { return strings.ToLower(l.Ref.Kind()) + " " + l.Ref.Path() }

// under says how many tenants are under a Policy.
func (l Loss) under() string {
	if l.Tenants == 1 {
		return "1 tenant is under"
	}
	return fmt.Sprintf("%d tenants are under", l.Tenants)
}

// used says how many projects have the credentials of a Registry.
func (l Loss) used() string {
	if l.Projects == 1 {
		return "1 project has"
	}
	return fmt.Sprintf("%d projects have", l.Projects)
}

// below describes what is deleted with an object, or loses by it.
func (l Loss) below() string {
	if l.Tenants > 0 {
		return ": " + l.under() + " it"
	}
	if l.Projects > 0 {
		return ": " + l.used() + " its credentials"
	}
	var parts []string
	for _, p := range []struct {
		n    int
		what string
	}{{len(l.Namespaces), "namespace"}, {l.Apps, "app"}, {l.Pods, "pod"}, {len(l.Claims), "claim"}} {
		switch {
		case p.n == 1:
			parts = append(parts, "1 "+p.what)
		case p.n > 1:
			parts = append(parts, fmt.Sprintf("%d %ss", p.n, p.what))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return ": with " + strings.Join(parts, ", ")
}
