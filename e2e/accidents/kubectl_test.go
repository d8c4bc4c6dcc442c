//go:build e2e

package accidents

// guarded are the texts that report each deletion that admission refuses.
var guarded = []string{"paas.kubeop.io/allow-deletion"}

// claimKept are the texts that report an app that was deleted and created again, and putBack those for a Deployment that was changed.
var (
	claimKept = []string{"Succeeded", "Kept", "PersistentVolumeClaim/store-data"}
	putBack   = []string{"DriftCorrected", "put back: Deployment/store"}
)

// kubectlAccidents are mistakes of an administrator with kubectl.
var kubectlAccidents = []accident{
	{
		mistake: "`kubectl delete crd apps.paas.kubeop.io`", on: own, outcome: "refused", recovery: "not needed",
		reports: append(guarded, "apps.paas.kubeop.io"), do: refused("delete crd apps.paas.kubeop.io --wait=false"), read: refusal, undo: none,
	},
	{
		mistake: "`kubectl delete crd tenants.paas.kubeop.io`", on: own, outcome: "refused", recovery: "not needed",
		reports: append(guarded, "tenants.paas.kubeop.io"), do: refused("delete crd tenants.paas.kubeop.io --wait=false"), read: refusal, undo: none,
	},
	{
		mistake: "`kubectl delete tenant`", on: own, outcome: "refused", recovery: "not needed",
		reports: append(guarded, "$t"), do: refused("delete tenant $t --wait=false"), read: refusal, undo: none,
	},
	{
		mistake: "`kubectl delete tenants` by label", on: inPlatform, outcome: "refused", recovery: "not needed",
		reports: append(guarded, "$t"), do: refused("delete tenants -l paas.kubeop.io/tenant=$t --wait=false"), read: refusal, undo: none,
	},
	{
		mistake: "`kubectl delete project`", on: own, outcome: "refused", recovery: "not needed",
		reports: append(guarded, "shop"), do: refused("delete project shop -n $home --wait=false"), read: refusal, undo: none,
	},
	{
		mistake: "`kubectl delete projects --all`", on: inPlatform, outcome: "refused", recovery: "not needed",
		reports: append(guarded, "shop"), do: refused("delete projects --all -n $home --wait=false"), read: refusal, undo: none,
	},
	{
		mistake: "`kubectl delete namespace` of a project", on: own, outcome: "refused", recovery: "not needed",
		reports: append(guarded, "$ns"), do: refused("delete namespace $ns --wait=false"), read: refusal, undo: none,
	},
	{
		mistake: "`kubectl delete namespace` of a tenant's home", on: inPlatform, outcome: "refused", recovery: "not needed",
		reports: append(guarded, "$home"), do: refused("delete namespace $home --wait=false"), read: refusal, undo: none,
	},
	{
		mistake: "a namespace is deleted with an annotation that names another one", on: own, outcome: "refused", recovery: "the annotation is removed",
		reports: guarded, read: refusal, undo: kubectl("annotate namespace $ns paas.kubeop.io/allow-deletion-"),
		do: all(kubectl("annotate namespace $ns --overwrite paas.kubeop.io/allow-deletion=other"), refused("delete namespace $ns --wait=false")),
	},
	{
		mistake: "`kubectl delete app` of an app with a volume", on: own, outcome: "the app is declared again and mounts its claim", recovery: "by itself",
		reports: claimKept, do: kubectl("delete apps.paas.kubeop.io store -n $ns --wait=false"), read: each(app("store"), events), undo: none, newPods: true,
	},
	{
		mistake: "`kubectl delete apps --all` in a project", on: inPlatform, outcome: "Git declares them again; the claim stays", recovery: "by itself",
		reports: claimKept, do: kubectl("delete apps.paas.kubeop.io --all -n $ns --wait=false"), read: each(app("store"), events), undo: none, newPods: true,
	},
	{
		mistake: "the finalizer of an App is removed and the App deleted", on: own, outcome: "it is declared again and manages what runs", recovery: "by itself",
		reports: []string{"Succeeded"}, read: app("store"), undo: none, newPods: true,
		do: all(kubectl("patch apps.paas.kubeop.io store -n $ns --type=merge -p {\"metadata\":{\"finalizers\":null}}"), kubectl("delete apps.paas.kubeop.io store -n $ns --wait=false")),
	},
	{
		mistake: "`kubectl delete repository` of a tenant", on: own, outcome: "it is declared again and loses nothing", recovery: "by itself",
		reports: []string{"Succeeded"}, do: kubectl("delete repository $t --wait=false"), read: repository, undo: none,
	},
	{
		mistake: "a tenant's Repository is deleted, and a project is removed before the Repository exists again", on: own, outcome: "the deletion is held nevertheless", recovery: "`git revert`",
		reports: append(held, "$ns/store-data"), read: repository, undo: revert,
		do: all(kubectl("delete repository $t --wait=false"), remove("$r")),
	},
	{
		mistake: "`kubectl delete deployment`", on: own, outcome: "it is created again, with its claim", recovery: "by itself",
		reports: putBack, do: kubectl("delete deployment store -n $ns"), read: app("store"), undo: none, newPods: true,
	},
	{
		mistake: "`kubectl delete all --all` in a project", on: inPlatform, outcome: "kubeop creates again what Git declares; the claim stays", recovery: "by itself",
		reports: []string{"DriftCorrected", "put back: "}, do: kubectl("delete deployments,services,pods,replicasets --all -n $ns"), read: app("store"), undo: none, newPods: true,
	},
	{
		mistake: "`kubectl scale deployment --replicas=0`", on: own, outcome: "corrected", recovery: "by itself",
		reports: putBack, do: kubectl("scale deployment store --replicas=0 -n $ns"), read: app("store"), undo: none, newPods: true,
	},
	{
		mistake: "the tenant's label is removed from a namespace", on: own, outcome: "kubeop restores it", recovery: "by itself",
		reports: []string{"paas.kubeop.io/tenant: $t", "Succeeded"}, read: each(output("get namespace $ns -o yaml"), project), undo: none,
		do: kubectl("label namespace $ns paas.kubeop.io/tenant-"),
	},
	{
		mistake: "the quota and the network policies of a project are deleted", on: own, outcome: "kubeop creates them again", recovery: "by itself",
		reports: []string{"resourcequota/kubeop", "networkpolicy.networking.k8s.io/", "Succeeded"}, undo: none,
		read: each(output("get resourcequota,networkpolicy -n $ns -o name"), project),
		do:   kubectl("delete resourcequota,networkpolicy --all -n $ns"),
	},
	{
		mistake: "the service account and the bindings of a project are deleted", on: own, outcome: "kubeop creates them again; what runs stays", recovery: "by itself",
		reports: []string{"serviceaccount/kubeop-deployer", "rolebinding.rbac.authorization.k8s.io/kubeop-deployer", "Succeeded"}, undo: none,
		read: each(output("get serviceaccount,rolebinding -n $ns -o name"), project),
		do:   all(kubectl("delete rolebindings --all -n $ns"), kubectl("delete serviceaccount kubeop-deployer -n $ns")),
	},
	{
		mistake: "a tenant is suspended, and its project is removed from Git", on: own, outcome: "nothing is deleted", recovery: "`git revert`, and the tenant is resumed",
		reports: []string{"Suspended"}, read: tenantStatus, undo: all(revert, revertTenant),
		do: all(editTenant("spec:\n", "spec:\n  suspend: true\n"), remove("$r")),
	},
	{
		mistake: "an app is suspended and then removed from Git", on: own, outcome: "what it delivered stays; the pod keeps running", recovery: "`git revert`",
		reports: []string{"LeftRunning", "App/store: what it made is left running: it was suspended"}, read: events, undo: revert,
		do: all(edit("$r/apps/store/app.yaml", "spec:\n", "spec:\n  suspend: true\n"), func(s *subject) {
			s.mustReport(app("store"), []string{"Suspended"})
		}, remove("$r/apps/store")),
	},
}
