package registry

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	core "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/credentials"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/apply"
	"github.com/kubeop/kubeop/delivery/guardrails"
	"github.com/kubeop/kubeop/delivery/inventory"
	"github.com/kubeop/kubeop/delivery/pullsecret"
)

// Provider keeps the pull Secrets of projects: one for each Registry that the tenant may use. It writes them as the deployer of the namespace,
// because the operator itself may write no Secret there.
type Provider struct {
	Client  client.Client
	Direct  client.Client
	Secrets *Secrets
	Applier *apply.Applier
	// Deployer returns the client of a namespace's deployer.
	Deployer func(namespace string) (client.Client, error)
	// Version returns the resourceVersion of a service account, "" if there is none, from a watch.
	Version func(ctx context.Context, namespace, kind, name string) (string, error)

	// OnChange registers a function that is called when an object of a project's namespace changes.
	OnChange func(func(namespace, kind, name string, labels map[string]string))

	// attached has, by namespace, the version of the default service account that needed no change, and for which names.
	attached sync.Map
}

// Place is a project, and what it has.
type Place struct {
	Tenant    *v1alpha1.Tenant
	Namespace string
	// Labels are those of all objects of the project.
	Labels map[string]string
	// Record records what the project may have from now on.
	Record func(context.Context, Held) error
	Held
}

// Held are the pull Secrets that a project has, and how they were applied.
type Held struct {
	Secrets []v1alpha1.PullSecret
	Entries []v1alpha1.InventoryEntry
}

// HeldBy returns what the status of a project records, and the rest of its inventory.
func HeldBy(status *v1alpha1.ProjectStatus) (Held, v1alpha1.Inventory) {
	held, rest := Held{Secrets: status.PullSecrets}, v1alpha1.Inventory{}
	for _, e := range status.Inventory.Entries {
		if id, err := inventory.ParseObjectID(e.ID); err == nil && id.IsSecret() {
			held.Entries = append(held.Entries, e)
			continue
		}
		rest.Entries = append(rest.Entries, e)
	}
	return held, rest
}

// Provide brings the pull Secrets of a project to what its tenant may use, has the default service account name them, and returns what the
// project has then, also with an error. A credential that cannot be read changes nothing of its copy.
func (p *Provider) Provide(ctx context.Context, at Place) (Held, error) {
	registries, policies, err := p.known(ctx)
	if err != nil {
		return at.Held, err
	}
	allowed := pullsecret.Of(at.Tenant, policies, registries)
	if len(allowed) == 0 && len(at.names()) == 0 {
		return at.Held, nil
	}
	deployer, err := p.Deployer(at.Namespace)
	if err != nil {
		return at.Held, err
	}
	now, problems, err := p.write(ctx, at, deployer, allowed)
	if err != nil {
		return now, err
	}
	gone := slices.DeleteFunc(at.names(), func(name string) bool { return slices.Contains(names(now.Secrets), name) })
	refused, err := p.drop(ctx, at, deployer, names(now.Secrets), gone)
	if err != nil {
		return now.and(at.Held), err // What is to go stays recorded.
	}
	return now, outcome(append(problems, refused))
}

// Withdraw takes from a project the pull Secrets of the Registries that its tenant may not use any more, and returns what the project has then, also with an
// error. It writes none. While a policy that the tenant is under does not exist, it takes none of the Registries for that policy, as guardrails stay then, too.
func (p *Provider) Withdraw(ctx context.Context, at Place) (Held, error) {
	registries, policies, err := p.known(ctx)
	if err != nil {
		return at.Held, err
	}
	allowed := pullsecret.Of(at.Tenant, policies, registries)
	_, missing := guardrails.Select(at.Tenant, policies)
	for _, name := range missing {
		policies = append(policies, v1alpha1.Policy{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	allowed = append(allowed, pullsecret.Of(at.Tenant, policies, registries)...)
	stays := func(name string) bool {
		return slices.ContainsFunc(allowed, func(r *v1alpha1.Registry) bool { return v1alpha1.PullSecretPrefix+r.Name == name })
	}
	gone := slices.DeleteFunc(at.names(), stays)
	if len(gone) == 0 {
		return at.Held, nil
	}
	deployer, err := p.Deployer(at.Namespace)
	if err != nil {
		return at.Held, err
	}
	left := Held{
		Secrets: slices.DeleteFunc(slices.Clone(at.Secrets), func(s v1alpha1.PullSecret) bool { return !stays(s.Name()) }),
		Entries: slices.DeleteFunc(slices.Clone(at.Entries), func(e v1alpha1.InventoryEntry) bool { return !stays(nameOf(e)) }),
	}
	if _, err := p.drop(ctx, at, deployer, names(left.Secrets), gone); err != nil { // Provide says what the account refuses.
		return at.Held, err
	}
	return left, nil
}

// drop has the default service account name the Secrets that are wanted and not those that are gone, and deletes these, also if the account cannot be
// written: the tenant may write it all the time.
func (p *Provider) drop(ctx context.Context, at Place, deployer client.Client, want, gone []string) (refused, err error) {
	refused, err = p.attach(ctx, at.Namespace, want, gone)
	return refused, errors.Join(err, p.remove(ctx, at, deployer, gone))
}

// known returns all Registries and Policies; no Policies if there are no Registries.
func (p *Provider) known(ctx context.Context) ([]v1alpha1.Registry, []v1alpha1.Policy, error) {
	registries, policies := &v1alpha1.RegistryList{}, &v1alpha1.PolicyList{}
	if err := p.Client.List(ctx, registries, client.UnsafeDisableDeepCopy); err != nil {
		return nil, nil, fmt.Errorf("listing the registries: %w", err)
	}
	if len(registries.Items) == 0 {
		return nil, nil, nil
	}
	if err := p.Client.List(ctx, policies, client.UnsafeDisableDeepCopy); err != nil {
		return nil, nil, fmt.Errorf("listing the policies: %w", err)
	}
	return registries.Items, policies.Items, nil
}

// write applies the Secrets. now is what the project has then, without what is to go. problems are those that only people can solve. If some Secrets fail, the
// service account names the others all the same, and now has everything that was there before.
func (p *Provider) write(ctx context.Context, at Place, deployer client.Client, allowed []*v1alpha1.Registry) (now Held, problems []error, err error) {
	made := slices.DeleteFunc(slices.Clone(at.Entries), func(e v1alpha1.InventoryEntry) bool { return e.Digest == "" })
	ledger := apply.NewLedger(p.Applier, deployer, v1alpha1.Inventory{Entries: made})
	var failed error
	for _, registry := range allowed {
		has := slices.IndexFunc(at.Secrets, func(s v1alpha1.PullSecret) bool { return s.Registry == registry.Name })
		err := p.writeOne(ctx, &at, ledger, registry)
		_, ended := step.Failure(err)
		switch {
		case err == nil:
			now.Secrets = append(now.Secrets, v1alpha1.PullSecret{Registry: registry.Name, Host: registry.Spec.Host, Insecure: registry.Spec.Insecure, Mirror: registry.Spec.Mirror})
		case !ended || step.Fails(err):
			failed = errors.Join(failed, err)
		default:
			problems = append(problems, err)
			if has >= 0 && !foreign(err) {
				now.Secrets = append(now.Secrets, at.Secrets[has])
			}
		}
	}
	if failed != nil {
		_, unnamed := p.attach(ctx, at.Namespace, names(now.Secrets), nil) // What the account refuses is reported once no Secret fails.
		now.Entries = ledger.Inventory().Entries
		return now.and(at.Held), nil, errors.Join(failed, unnamed)
	}
	now.Entries = slices.DeleteFunc(ledger.Inventory().Entries, func(e v1alpha1.InventoryEntry) bool { return !slices.Contains(names(now.Secrets), nameOf(e)) })
	return now, problems, nil
}

// foreign reports whether another owner's Secret has the name.
func foreign(err error) bool {
	return errors.Is(err, apply.ErrForeign) || errors.Is(err, apply.ErrContested)
}

// writeOne applies one Secret. Before it makes one, it records that, so that the Secret is not forgotten if the process ends.
func (p *Provider) writeOne(ctx context.Context, at *Place, ledger *apply.Ledger, registry *v1alpha1.Registry) error {
	content, err := p.Secrets.Content(ctx, registry)
	if err != nil {
		return err
	}
	secret := core.Secret(v1alpha1.PullSecretPrefix+registry.Name, at.Namespace).WithLabels(at.Labels).
		WithType(corev1.SecretTypeDockerConfigJson).WithData(content)
	if !slices.Contains(at.names(), *secret.Name) {
		id := inventory.ObjectID{Namespace: at.Namespace, Name: *secret.Name, Kind: "Secret"}
		at.Entries = append(slices.Clone(at.Entries), v1alpha1.InventoryEntry{ID: id.String(), Version: "v1"})
		if err := at.Record(ctx, at.Held); err != nil {
			return err
		}
	}
	err = ledger.Apply(ctx, secret)
	if foreign(err) || step.Unacceptable(err) {
		return step.Stop(v1alpha1.PullSecretRefusedReason, err)
	}
	return err
}

// remove deletes Secrets that the project may not have any more, if they carry its labels. One that cannot be deleted holds up no other.
func (p *Provider) remove(ctx context.Context, at Place, deployer client.Client, gone []string) (failed error) {
	for _, name := range gone {
		failed = errors.Join(failed, p.removeOne(ctx, at, deployer, name))
	}
	return failed
}

func (p *Provider) removeOne(ctx context.Context, at Place, deployer client.Client, name string) error {
	live := credentials.MetadataOnly()
	err := deployer.Get(ctx, client.ObjectKey{Namespace: at.Namespace, Name: name}, live)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading secret %s/%s: %w", at.Namespace, name, err)
	}
	owner := maps.Clone(live.GetLabels())
	maps.DeleteFunc(owner, func(key, _ string) bool { return !slices.Contains(v1alpha1.OwnerLabels, key) })
	if !maps.Equal(owner, at.Labels) {
		return nil // It is somebody else's.
	}
	version := live.GetResourceVersion()
	err = deployer.Delete(ctx, live, client.Preconditions{ResourceVersion: &version})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting secret %s/%s, whose registry the tenant may not use any more: %w", at.Namespace, name, err)
	}
	return nil
}

// names are the names of all Secrets that may be there.
func (h Held) names() []string {
	all := names(h.Secrets)
	for _, e := range h.Entries {
		if name := nameOf(e); !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}

// and returns these Secrets, and those that were there before.
func (h Held) and(before Held) Held {
	for _, s := range before.Secrets {
		if !slices.ContainsFunc(h.Secrets, func(own v1alpha1.PullSecret) bool { return own.Registry == s.Registry }) {
			h.Secrets = append(h.Secrets, s)
		}
	}
	slices.SortFunc(h.Secrets, func(a, b v1alpha1.PullSecret) int { return strings.Compare(a.Registry, b.Registry) })
	h.Entries = append(inventory.Without(before.Entries, h.Entries), h.Entries...)
	return h
}

// nameOf is the name of the Secret of an entry.
func nameOf(e v1alpha1.InventoryEntry) string {
	id, err := inventory.ParseObjectID(e.ID)
	if err != nil {
		return e.ID // HeldBy returns no such entry.
	}
	return id.Name
}

// outcome ends the step with what only people can solve. What is delivered stands, so Ready does not report it.
func outcome(problems []error) error {
	problems = slices.DeleteFunc(problems, func(err error) bool { return err == nil })
	if len(problems) == 0 {
		return nil
	}
	reason, _ := step.Failure(problems[0])
	return step.Degrade(step.Stop(reason, errors.Join(problems...)))
}

func names(of []v1alpha1.PullSecret) (names []string) {
	for _, s := range of {
		names = append(names, s.Name())
	}
	return names
}

// Forget drops the state of a deleted project's namespace.
func (p *Provider) Forget(namespace string) { p.attached.Delete(namespace) }

// Concerns reports whether an object in the namespace of a project is one that a Provider keeps: a pull Secret, or the default service account.
func Concerns(kind, name string) bool {
	return kind == "Secret" && strings.HasPrefix(name, v1alpha1.PullSecretPrefix) || kind == "ServiceAccount" && name == defaultAccount
}
