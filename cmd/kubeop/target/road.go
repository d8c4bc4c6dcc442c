package target

import (
	"fmt"

	"github.com/fluxcd/pkg/runtime/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// Abnormal are the conditions that are present only when something deserves a look.
var Abnormal = []string{
	v1alpha1.ReconcilingCondition, v1alpha1.StalledCondition, v1alpha1.SuspendedCondition, v1alpha1.NearSizeLimitCondition, v1alpha1.HookClosedCondition,
	v1alpha1.CommitStatusFailedCondition, v1alpha1.PlanCommentFailedCondition, v1alpha1.NotificationFailedCondition, v1alpha1.PromotionPendingCondition,
	v1alpha1.DriftedCondition, v1alpha1.ImageKeptCondition, v1alpha1.ImageWriteFailedCondition, v1alpha1.FrozenCondition, v1alpha1.StoppedCondition,
	v1alpha1.PolicyWarningCondition, v1alpha1.OutdatedKeyCondition, v1alpha1.StartedEmptyCondition, v1alpha1.RemediatedCondition, v1alpha1.OverBudgetCondition, v1alpha1.NotEnforcedCondition,
}

// Steps returns the conditions of a kind in the order in which kubeop takes the steps, and then those of its removal.
func Steps(kind Kind) []string {
	return map[string][]string{
		v1alpha1.RepositoryKind: {v1alpha1.FetchedCondition, v1alpha1.SyncedCondition, v1alpha1.AcceptedCondition, v1alpha1.TreeValidCondition},
		v1alpha1.TenantKind: {
			v1alpha1.NamespaceReadyCondition, v1alpha1.GuardrailsReadyCondition, v1alpha1.AccessReadyCondition, v1alpha1.RepositoryBoundCondition, v1alpha1.DomainsReadyCondition,
			v1alpha1.KeyReadyCondition, v1alpha1.AppsReadyCondition,
			v1alpha1.RepositoryUnboundCondition, v1alpha1.ProjectsRemovedCondition, v1alpha1.NamespaceRemovedCondition,
		},
		v1alpha1.ProjectKind: {
			v1alpha1.CurrentCondition, v1alpha1.DependenciesReadyCondition, v1alpha1.NamespaceReadyCondition, v1alpha1.GuardrailsReadyCondition,
			v1alpha1.AccessReadyCondition, v1alpha1.RegistriesReadyCondition, v1alpha1.AppsReadyCondition, v1alpha1.AppsRemovedCondition,
			v1alpha1.NamespaceRemovedCondition,
		},
		v1alpha1.RegistryKind: {v1alpha1.SecretReadyCondition, v1alpha1.CredentialsRemovedCondition},
		v1alpha1.AppKind: {
			v1alpha1.CurrentCondition, v1alpha1.DependenciesReadyCondition, v1alpha1.SourceReadyCondition, v1alpha1.RenderedCondition, v1alpha1.AllowedCondition,
			v1alpha1.AppliedCondition, v1alpha1.ReleasedCondition, v1alpha1.HealthyCondition, v1alpha1.TestSuccessCondition, v1alpha1.HooksSucceededCondition,
			v1alpha1.RemovedCondition,
		},
	}[kind.Name]
}

// conditioned is an object with conditions.
type conditioned interface {
	client.Object
	conditions.Getter
}

// Next returns the commands that help with the state of an object, each with what it does.
func Next(of Object, object client.Object) []string {
	o, ok := object.(conditioned)
	held := AllHeld(of, object)
	if !ok || conditions.IsTrue(o, v1alpha1.ReadyCondition) && len(held) == 0 && !conditions.IsTrue(o, v1alpha1.SuspendedCondition) {
		return nil
	}
	var next []string
	add := func(command, why string) {
		next = append(next, fmt.Sprintf("kubeop %s %s   %s", command, of.Args(), why))
	}
	if conditions.IsTrue(o, v1alpha1.SuspendedCondition) {
		add("resume", "# continue to reconcile it")
		return next
	}
	if len(held) > 0 {
		add("confirm", "# "+held[0].Next)
	}
	if _, isApp := object.(*v1alpha1.App); isApp {
		if conditions.IsFalse(o, v1alpha1.HealthyCondition) || conditions.IsFalse(o, v1alpha1.ReleasedCondition) {
			add("logs", "# what its pods write")
		}
		add("blame", "# which commit broke it")
		if conditions.IsTrue(o, v1alpha1.StalledCondition) {
			add("force", "# try the same again")
		}
	}
	return next
}
