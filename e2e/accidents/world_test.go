//go:build e2e

package accidents

// ofNamespace are the kinds of which a project's namespace has objects that do not make themselves.
const ofNamespace = "serviceaccounts,roles,rolebindings,resourcequotas,limitranges,networkpolicies,configmaps,persistentvolumeclaims,services,deployments,apps.paas.kubeop.io -n $ns"

// worldAccidents turn back more than kubeop's own objects.
var worldAccidents = []accident{
	{
		slip: "a namespace is deleted, and restored by a tool that drops UIDs and owners", on: own,
		fate: "everything in it is taken back, the claim with its volume", mend: "by itself",
		says: []string{"Succeeded"}, place: each(project, app("store")), back: ask, newPods: true, newClaims: true,
		do: func(s *scene) {
			allowNamespace(s)
			operatorDown(s)
			namespace, saved := s.backUp("namespaces --field-selector metadata.name=$ns"), s.backUp(ofNamespace)
			s.lose(s.backUp("apps.paas.kubeop.io -n $ns"))
			kubectl("delete namespace $ns --timeout=60s")(s)
			for _, c := range s.before.Claims {
				s.release(c.Volume)
			}
			s.restore(append(namespace, saved...))
			operatorUp(s)
		},
	},
}

// allowNamespace marks the project's namespace to be deleted, and waits until its volumes outlive that.
func allowNamespace(s *scene) {
	kubectl("annotate namespace $ns --overwrite paas.kubeop.io/allow-deletion=$ns")(s)
	s.says(output(`get namespace $ns -o jsonpath={.metadata.annotations.paas\.kubeop\.io/volumes-retained}`), []string{s.volume()})
}
