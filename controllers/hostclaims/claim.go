package hostclaims

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/few"
	"github.com/kubeop/kubeop/delivery/guardrails"
	"github.com/kubeop/kubeop/delivery/hostname"
	"github.com/kubeop/kubeop/delivery/own"
	"github.com/kubeop/kubeop/delivery/policy"
	"github.com/kubeop/kubeop/delivery/render/objectset"
)

// maxQuoted is how many characters of a tenant's text a message quotes.
const maxQuoted = 253

// Pending is the error of an app that has its host names, but the API server does not accept them yet.
type Pending struct {
	Namespace string
	Names     []string
}

func (p *Pending) Error() string {
	return fmt.Sprintf("waits until the guardrails of namespace %s have the host names %s", p.Namespace, strings.Join(few.Of(p.Names, 5), ", "))
}

// host is a host name that an object asks for.
type host struct {
	// name is normalized. written is the name as the object has it.
	name, written string
	// object as "<kind>/<name>".
	object string
}

// Claim claims the host names of an app's objects for its project. The error is a *policy.Violation, or joins some, if the app may not have a name, and
// *Pending until the cache has all claims and the Guardrails have all names. A name is compared with overlapping claims of others when the cache has its claim:
// a watch delivers claims in the order in which they were created, so the cache has every older one by then. (While a watch begins anew, the order can be another
// one for a moment; what is overlooked then is found when the Guardrails have the name.) An app whose names did not change writes nothing.
func (c *Claims) Claim(ctx context.Context, owner own.Owner, objects []*unstructured.Unstructured) error {
	if !c.Judges(owner.Tenant) {
		return nil
	}
	wanted, err := hostsOf(owner, objects)
	if err != nil {
		return err
	}
	missing, err := c.compare(ctx, owner, wanted)
	if err != nil {
		return err
	}
	if err := c.room(ctx, owner, missing); err != nil {
		return err
	}
	c.ask(keyOf(owner), namesOf(wanted))
	for _, h := range missing {
		if err := c.create(ctx, owner, h); err != nil {
			return err
		}
	}
	if len(missing) > 0 {
		return &Pending{owner.Namespace, namesOf(missing)}
	}
	return c.listed(ctx, owner, wanted)
}

// keyOf is the namespace and name of an app.
func keyOf(owner own.Owner) types.NamespacedName {
	return types.NamespacedName{Namespace: owner.Namespace, Name: owner.App}
}

func namesOf(hosts []host) (names []string) {
	for _, h := range hosts {
		names = append(names, h.name)
	}
	slices.Sort(names)
	return names
}

// hostsOf returns the host names of objects, each once.
func hostsOf(owner own.Owner, objects []*unstructured.Unstructured) (hosts []host, err error) {
	seen := map[string]bool{}
	var refused []error
	for _, object := range objects {
		members, err := objectset.Expand(object)
		if err != nil {
			return nil, err
		}
		for _, h := range writtenIn(members) {
			wrong := h.normalize(owner)
			refused = append(refused, wrong)
			if h.name != "" && !seen[h.name] {
				seen[h.name] = true
				hosts = append(hosts, h)
			}
		}
	}
	return hosts, errors.Join(refused...)
}

// writtenIn returns the host names as objects have them.
func writtenIn(objects []*unstructured.Unstructured) (hosts []host) {
	for _, object := range objects {
		for _, written := range guardrails.Hosts(object) {
			hosts = append(hosts, host{written: written, object: policy.NameOf(object)})
		}
	}
	return hosts
}

// normalize sets the name of a host; "" if there can be no such name. Objects of the platform itself may serve every name.
func (h *host) normalize(owner own.Owner) error {
	name, err := hostname.Normalize(h.written)
	switch {
	case err == nil:
		h.name = name
	case owner.Tenant == v1alpha1.PlatformTenant:
	case h.written == "":
		return &policy.Violation{Object: h.object, Rule: guardrails.Hostnames, Why: guardrails.EveryHost}
	default:
		return h.refused(err.Error(), "correct it in Git")
	}
	return nil
}

// refused returns why an app may not have a host name, in words that follow it, and what to do.
func (h host) refused(why, remedy string) error {
	return &policy.Violation{
		Object: h.object, Rule: guardrails.Hostnames, Why: "has the host " + few.Line(h.written, maxQuoted) + ", which " + why,
		Remedies: []policy.Remedy{{About: "host names", Text: remedy}},
	}
}

// compare returns the host names that nobody has. Its error says which ones others have.
func (c *Claims) compare(ctx context.Context, owner own.Owner, wanted []host) (missing []host, err error) {
	var refused []error
	for _, h := range wanted {
		claim, err := c.held(ctx, owner, h)
		switch {
		case err != nil:
			return nil, err
		case claim != nil && !isOf(claim, owner):
			taken := c.taken(ctx, owner, claim, h)
			if !errors.As(taken, new(*policy.Violation)) {
				return nil, taken
			}
			refused = append(refused, taken)
			continue
		case claim == nil:
			missing = append(missing, h)
			err = c.reserved(ctx, owner, h)
			if err != nil && !errors.As(err, new(*policy.Violation)) {
				return nil, err
			}
			refused = append(refused, err)
		}
		// Without a claim it is a courtesy: nothing is created that would be deleted at the next look.
		err = c.contested(ctx, owner, claim, h)
		if err != nil && !errors.As(err, new(*policy.Violation)) {
			return nil, err
		}
		refused = append(refused, err)
	}
	return missing, errors.Join(refused...)
}

// reserved refuses a host name in a domain of an older tenant, with which a domain of the owner's tenant overlaps.
func (c *Claims) reserved(ctx context.Context, owner own.Owner, h host) error {
	tenants := &v1alpha1.TenantList{}
	if err := c.Client.List(ctx, tenants, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing the tenants: %w", err)
	}
	at := slices.IndexFunc(tenants.Items, func(t v1alpha1.Tenant) bool { return t.Name == owner.Tenant })
	if at < 0 || !hostname.Reserved(&tenants.Items[at], tenants.Items, h.name) {
		return nil
	}
	return h.refused("is in a domain of another, older tenant", "choose another one in Git, or ask an administrator of the cluster: the condition DomainsReady of the tenant says which domains overlap")
}

// held returns the claim of a host name; nil if there is none. It deletes a claim of a project that is gone.
func (c *Claims) held(ctx context.Context, owner own.Owner, h host) (*v1alpha1.HostnameClaim, error) {
	claim, err := c.get(ctx, hostname.ClaimName(h.name))
	if claim == nil || err != nil || isOf(claim, owner) {
		return claim, err
	}
	c.await(keyOf(owner), claim.Name) // Before it is read again, so that its deletion is not missed.
	if claim, err = c.get(ctx, claim.Name); claim == nil || err != nil {
		return nil, err
	}
	if abandoned, err := c.abandoned(ctx, claim); !abandoned || err != nil {
		return claim, err
	}
	return nil, c.delete(ctx, claim)
}

// taken returns the message that another project has a name. It names the project only if that belongs to the same tenant. If the project does not exist,
// an administrator made the claim, or the project's namespace still exists: then only administrators can free the name.
func (c *Claims) taken(ctx context.Context, owner own.Owner, claim *v1alpha1.HostnameClaim, h host) error {
	gone, err := c.gone(ctx, claim)
	switch {
	case err != nil:
		return err
	case gone && byHand(claim):
		return h.left("an administrator of the cluster keeps for a project that does not exist", claim)
	case gone:
		return h.left("a project has that does not exist any more and whose namespace is left", claim)
	case claim.Spec.Tenant == owner.Tenant:
		return h.refused("project "+claim.Spec.Project+" of this tenant has", "remove it there, or choose another one, in Git")
	}
	return h.ofAnother("another tenant has")
}

// left returns the message that nobody uses a name, and how it becomes free.
func (h host) left(why string, claim *v1alpha1.HostnameClaim) error {
	return h.refused(why, "choose another one in Git, or ask an administrator of the cluster to free it with: kubectl delete hostnameclaim "+claim.Name)
}

func (h host) ofAnother(why string) error {
	return h.refused(why, "choose another one in Git, or ask an administrator of the cluster, to whom kubectl get hostnameclaims shows which tenant has it")
}

// abandoned reports whether the project and the namespace of a claim that kubeop made are gone.
func (c *Claims) abandoned(ctx context.Context, claim *v1alpha1.HostnameClaim) (bool, error) {
	if byHand(claim) {
		return false, nil
	}
	if gone, err := c.gone(ctx, claim); !gone || err != nil {
		return false, err
	}
	namespace := client.ObjectKey{Name: v1alpha1.ProjectNamespace(claim.Spec.Tenant, claim.Spec.Project)}
	return missing(c.Direct.Get(ctx, namespace, &corev1.Namespace{}), claim)
}

// gone reports whether the project of a claim does not exist.
func (c *Claims) gone(ctx context.Context, claim *v1alpha1.HostnameClaim) (bool, error) {
	project := client.ObjectKey{Namespace: v1alpha1.HomeNamespace(claim.Spec.Tenant), Name: claim.Spec.Project}
	if gone, err := missing(c.Client.Get(ctx, project, &v1alpha1.Project{}), claim); !gone || err != nil {
		return false, err
	}
	return missing(c.Direct.Get(ctx, project, &v1alpha1.Project{}), claim)
}

// missing reports whether a read found nothing. claim is the claim that the read is about.
func missing(err error, claim *v1alpha1.HostnameClaim) (bool, error) {
	if err == nil || apierrors.IsNotFound(err) {
		return err != nil, nil
	}
	return false, fmt.Errorf("looking whether project %s is gone: %w", client.ObjectKey{Namespace: v1alpha1.HomeNamespace(claim.Spec.Tenant), Name: claim.Spec.Project}, err)
}

// room returns an error if a project would have too many host names.
func (c *Claims) room(ctx context.Context, owner own.Owner, missing []host) error {
	if len(missing) == 0 {
		return nil
	}
	has, err := c.of(ctx, owner.Tenant, owner.Project)
	if err != nil || len(has)+len(missing) <= v1alpha1.MaxHostnames {
		return err
	}
	return missing[0].refused(fmt.Sprintf("is one too many: a project can have %d host names, and with those of this app it would have %d", v1alpha1.MaxHostnames, len(has)+len(missing)),
		"use a wildcard, or move apps to another project, in Git")
}

// create claims a host name. The API server gives it to the first.
func (c *Claims) create(ctx context.Context, owner own.Owner, h host) error {
	claim := &v1alpha1.HostnameClaim{
		ObjectMeta: metav1.ObjectMeta{Name: hostname.ClaimName(h.name), Labels: map[string]string{
			v1alpha1.ManagedByLabel: v1alpha1.FieldManager, v1alpha1.TenantLabel: owner.Tenant, v1alpha1.ProjectLabel: owner.Project,
		}},
		Spec: v1alpha1.HostnameClaimSpec{Hostname: h.name, Tenant: owner.Tenant, Project: owner.Project},
	}
	err := c.Client.Create(ctx, claim)
	if apierrors.IsAlreadyExists(err) {
		c.await(keyOf(owner), claim.Name)
		live := &v1alpha1.HostnameClaim{}
		if err := c.Direct.Get(ctx, client.ObjectKey{Name: claim.Name}, live); err != nil {
			return fmt.Errorf("reading who has host name %s: %w", h.name, err)
		}
		if !isOf(live, owner) {
			return c.taken(ctx, owner, live, h)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("claiming host name %s: %w", h.name, err)
	}
	return nil
}

// contested refuses a host name that overlaps, by a wildcard, with an older claim of another tenant, and deletes the owner's claim of it, which is nil if there is none.
func (c *Claims) contested(ctx context.Context, owner own.Owner, claim *v1alpha1.HostnameClaim, h host) error {
	other, err := c.rival(ctx, owner.Tenant, h.name, claim)
	if other == nil || err != nil {
		return err
	}
	c.await(keyOf(owner), other.Name)
	if claim != nil {
		if err := c.delete(ctx, claim); err != nil {
			return err
		}
	}
	if hostname.Covers(other.Spec.Hostname, h.name) {
		return h.ofAnother("another tenant has with a wildcard")
	}
	return h.ofAnother("has names that another tenant has")
}

// delete deletes a claim, unless another one took its place.
func (c *Claims) delete(ctx context.Context, claim *v1alpha1.HostnameClaim) error {
	err := c.Client.Delete(ctx, claim, client.Preconditions{UID: &claim.UID})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("releasing host name %s: %w", claim.Spec.Hostname, err)
	}
	return nil
}

// listed returns *Pending until the Guardrails of an app's namespace have all names in the cache. Apps of the platform itself have no Guardrails.
func (c *Claims) listed(ctx context.Context, owner own.Owner, wanted []host) error {
	if owner.Tenant == v1alpha1.PlatformTenant || len(wanted) == 0 {
		return nil
	}
	rules := &v1alpha1.Guardrails{}
	if err := c.Client.Get(ctx, client.ObjectKey{Namespace: owner.Namespace, Name: v1alpha1.GuardrailsName}, rules); err != nil {
		return fmt.Errorf("reading the guardrails of namespace %s: %w", owner.Namespace, err)
	}
	var names []string
	for _, h := range wanted {
		if rules.Spec.Hostnames == nil || !slices.Contains(rules.Spec.Hostnames.Names, h.name) {
			names = append(names, h.name)
		}
	}
	if names != nil {
		return &Pending{owner.Namespace, names}
	}
	return nil
}
