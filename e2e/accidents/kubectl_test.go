//go:build e2e

package accidents

// guarded are the words of every deletion that admission refuses.
var guarded = []string{"paas.kubeop.io/allow-deletion"}

// claimKept are the words of an app that was deleted and declared again; putBack of one whose Deployment was changed.
var (
	claimKept = []string{"Succeeded", "Kept", "PersistentVolumeClaim/store-data"}
	putBack   = []string{"DriftCorrected", "put back: Deployment/store"}
)

// kubectlAccidents are slips of an administrator at the keyboard.
var kubectlAccidents = []accident{
	{
		slip: "`kubectl delete crd apps.paas.kubeop.io`", on: own, fate: "refused", mend: "not needed",
		says: append(guarded, "apps.paas.kubeop.io"), do: refused("delete crd apps.paas.kubeop.io --wait=false"), place: refusal, back: none,
	},
	{
		slip: "`kubectl delete crd tenants.paas.kubeop.io`", on: own, fate: "refused", mend: "not needed",
		says: append(guarded, "tenants.paas.kubeop.io"), do: refused("delete crd tenants.paas.kubeop.io --wait=false"), place: refusal, back: none,
	},
	{
		slip: "`kubectl delete tenant`", on: own, fate: "refused", mend: "not needed",
		says: append(guarded, "$t"), do: refused("delete tenant $t --wait=false"), place: refusal, back: none,
	},
	{
		slip: "`kubectl delete tenants` by label", on: inPlatform, fate: "refused", mend: "not needed",
		says: append(guarded, "$t"), do: refused("delete tenants -l paas.kubeop.io/tenant=$t --wait=false"), place: refusal, back: none,
	},
	{
		slip: "`kubectl delete project`", on: own, fate: "refused", mend: "not needed",
		says: append(guarded, "shop"), do: refused("delete project shop -n $home --wait=false"), place: refusal, back: none,
	},
	{
		slip: "`kubectl delete projects --all`", on: inPlatform, fate: "refused", mend: "not needed",
		says: append(guarded, "shop"), do: refused("delete projects --all -n $home --wait=false"), place: refusal, back: none,
	},
	{
		slip: "`kubectl delete namespace` of a project", on: own, fate: "refused", mend: "not needed",
		says: append(guarded, "$ns"), do: refused("delete namespace $ns --wait=false"), place: refusal, back: none,
	},
	{
		slip: "`kubectl delete namespace` of a tenant's home", on: inPlatform, fate: "refused", mend: "not needed",
		says: append(guarded, "$home"), do: refused("delete namespace $home --wait=false"), place: refusal, back: none,
	},
	{
		slip: "a namespace is deleted with an annotation that names another one", on: own, fate: "refused", mend: "the annotation is removed",
		says: guarded, place: refusal, back: kubectl("annotate namespace $ns paas.kubeop.io/allow-deletion-"),
		do: all(kubectl("annotate namespace $ns --overwrite paas.kubeop.io/allow-deletion=other"), refused("delete namespace $ns --wait=false")),
	},
	{
		slip: "`kubectl delete app` of an app with a volume", on: own, fate: "the app is declared again and mounts its claim", mend: "by itself",
		says: claimKept, do: kubectl("delete apps.paas.kubeop.io store -n $ns --wait=false"), place: each(app("store"), events), back: none, newPods: true,
	},
	{
		slip: "`kubectl delete apps --all` in a project", on: inPlatform, fate: "Git declares them again; the claim stays", mend: "by itself",
		says: claimKept, do: kubectl("delete apps.paas.kubeop.io --all -n $ns --wait=false"), place: each(app("store"), events), back: none, newPods: true,
	},
	{
		slip: "the finalizer of an App is removed and the App deleted", on: own, fate: "it is declared again and manages what runs", mend: "by itself",
		says: []string{"Succeeded"}, place: app("store"), back: none, newPods: true,
		do: all(kubectl("patch apps.paas.kubeop.io store -n $ns --type=merge -p {\"metadata\":{\"finalizers\":null}}"), kubectl("delete apps.paas.kubeop.io store -n $ns --wait=false")),
	},
	{
		slip: "`kubectl delete repository` of a tenant", on: own, fate: "it is declared again and loses nothing", mend: "by itself",
		says: []string{"Succeeded"}, do: kubectl("delete repository $t --wait=false"), place: repository, back: none,
	},
	{
		slip: "a tenant's Repository is deleted, and a project is removed before the Repository exists again", on: own, fate: "the deletion is held nevertheless", mend: "`git revert`",
		says: append(held, "$ns/store-data"), place: repository, back: revert,
		do: all(kubectl("delete repository $t --wait=false"), remove("$r")),
	},
	{
		slip: "`kubectl delete deployment`", on: own, fate: "it is created again, with its claim", mend: "by itself",
		says: putBack, do: kubectl("delete deployment store -n $ns"), place: app("store"), back: none, newPods: true,
	},
	{
		slip: "`kubectl delete all --all` in a project", on: inPlatform, fate: "kubeop creates again what Git declares; the claim stays", mend: "by itself",
		says: []string{"DriftCorrected", "put back: "}, do: kubectl("delete deployments,services,pods,replicasets --all -n $ns"), place: app("store"), back: none, newPods: true,
	},
	{
		slip: "`kubectl scale deployment --replicas=0`", on: own, fate: "corrected", mend: "by itself",
		says: putBack, do: kubectl("scale deployment store --replicas=0 -n $ns"), place: app("store"), back: none, newPods: true,
	},
	{
		slip: "the tenant's label is removed from a namespace", on: own, fate: "kubeop restores it", mend: "by itself",
		says: []string{"paas.kubeop.io/tenant: $t", "Succeeded"}, place: each(output("get namespace $ns -o yaml"), project), back: none,
		do: kubectl("label namespace $ns paas.kubeop.io/tenant-"),
	},
	{
		slip: "the quota and the network policies of a project are deleted", on: own, fate: "kubeop creates them again", mend: "by itself",
		says: []string{"resourcequota/kubeop", "networkpolicy.networking.k8s.io/", "Succeeded"}, back: none,
		place: each(output("get resourcequota,networkpolicy -n $ns -o name"), project),
		do:    kubectl("delete resourcequota,networkpolicy --all -n $ns"),
	},
	{
		slip: "the service account and the bindings of a project are deleted", on: own, fate: "kubeop creates them again; what runs stays", mend: "by itself",
		says: []string{"serviceaccount/kubeop-deployer", "rolebinding.rbac.authorization.k8s.io/kubeop-deployer", "Succeeded"}, back: none,
		place: each(output("get serviceaccount,rolebinding -n $ns -o name"), project),
		do:    all(kubectl("delete rolebindings --all -n $ns"), kubectl("delete serviceaccount kubeop-deployer -n $ns")),
	},
	{
		slip: "a tenant is suspended, and its project is removed from Git", on: own, fate: "nothing is deleted", mend: "`git revert`, and the tenant is resumed",
		says: []string{"Suspended"}, place: tenantStatus, back: all(revert, revertTenant),
		do: all(editTenant("spec:\n", "spec:\n  suspend: true\n"), remove("$r")),
	},
	{
		slip: "an app is suspended and then removed from Git", on: own, fate: "what it delivered stays; the pod keeps running", mend: "`git revert`",
		says: []string{"LeftRunning", "App/store: what it made is left running: it was suspended"}, place: events, back: revert,
		do: all(edit("$r/apps/store/app.yaml", "spec:\n", "spec:\n  suspend: true\n"), func(s *scene) {
			s.says(app("store"), []string{"Suspended"})
		}, remove("$r/apps/store")),
	},
}
