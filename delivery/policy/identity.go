package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeop/kubeop/delivery/access"
)

const rbacGroup = rbacv1.GroupName

// foreignSubject: the RoleBinding grants rights in the project to a subject outside of it. Kubernetes' groups of service accounts and of
// users count as outside, because they include everyone. So do the accounts as which people act by kubeconfigs.
func foreignSubject(object *unstructured.Unstructured, namespace string) string {
	kind := object.GroupVersionKind()
	if kind.Group != rbacGroup || kind.Kind != "RoleBinding" {
		return ""
	}
	subjects, _ := object.Object["subjects"].([]any)
	for _, s := range subjects {
		subject, _ := s.(map[string]any)
		if who := outsider(subject, namespace); who != "" {
			return fmt.Sprintf("gives rights to %s, which is outside of namespace %s", oneLine(who), namespace)
		}
		kind, _ := subject["kind"].(string)
		if name, _ := subject["name"].(string); access.OfPeople(kind, name, namespace) {
			return fmt.Sprintf("gives rights to %s, which people act as by kubeconfigs; a binding may name single accounts of the app", oneLine(name))
		}
	}
	return ""
}

// outsider names a subject that does not belong to the namespace. Users and groups of an identity provider are the tenant's own decision.
func outsider(subject map[string]any, namespace string) string {
	name, _ := subject["name"].(string)
	if subject["kind"] == rbacv1.ServiceAccountKind {
		other, _ := subject["namespace"].(string)
		if other == "" || other == namespace {
			return ""
		}
		return "service account " + other + "/" + name
	}
	ofNamespace := name == "system:serviceaccounts:"+namespace || strings.HasPrefix(name, "system:serviceaccount:"+namespace+":")
	if !strings.HasPrefix(name, "system:") || ofNamespace {
		return ""
	}
	return name
}

// platformIdentity: something in the object would run as the platform's service account. Code that runs as the deployer could do and read
// everything that an app may. The field is searched at any depth, because custom kinds create pods too.
func platformIdentity(object *unstructured.Unstructured, _ string) string {
	var used string
	visit(object.Object, func(key string, value any) {
		name, _ := value.(string)
		if (key == "serviceAccountName" || key == "serviceAccount") && strings.HasPrefix(name, reserved) {
			used = name
		}
	})
	if used == "" {
		return ""
	}
	return fmt.Sprintf("would run as service account %s, which is the platform's; use one of the app's own, named in Git", oneLine(used))
}

// platformToken: the Secret requests a permanent token of the platform's service account from the API server.
func platformToken(object *unstructured.Unstructured, _ string) string {
	kind := object.GroupVersionKind()
	if kind.Group != "" || kind.Kind != "Secret" || object.Object["type"] != string(corev1.SecretTypeServiceAccountToken) {
		return ""
	}
	annotations, _, _ := unstructured.NestedFieldNoCopy(object.Object, "metadata", "annotations")
	values, _ := annotations.(map[string]any)
	if name, _ := values[corev1.ServiceAccountNameKey].(string); strings.HasPrefix(name, reserved) {
		return fmt.Sprintf("requests a token of service account %s, which is the platform's", oneLine(name))
	}
	return ""
}

// releaseRecord: the Secret would be a revision of a Helm release, of this app or of another. kubeop would trust its labels, because kubeop
// itself applies the object.
func releaseRecord(object *unstructured.Unstructured, _ string) string {
	kind := object.GroupVersionKind()
	if kind.Group != "" || kind.Kind != "Secret" {
		return ""
	}
	if object.Object["type"] != "helm.sh/release.v1" && !strings.HasPrefix(object.GetName(), "sh.helm.release.v1.") {
		return ""
	}
	return "is a record of Helm's; only Helm itself writes the history of a release"
}

// visit calls see for every field at any depth, in the order of the keys.
func visit(value any, see func(key string, value any)) {
	switch value := value.(type) {
	case map[string]any:
		for _, key := range sortedKeys(value) {
			see(key, value[key])
			visit(value[key], see)
		}
	case []any:
		for _, item := range value {
			visit(item, see)
		}
	}
}

func sortedKeys(values map[string]any) []string { return slices.Sorted(maps.Keys(values)) }

// eachPod calls see for the spec of every pod, at any depth of the object.
func eachPod(object *unstructured.Unstructured, see func(pod map[string]any)) {
	visit(object.Object, func(field string, value any) {
		if pod, ok := value.(map[string]any); ok && field == "spec" && pod["containers"] != nil {
			see(pod)
		}
	})
}
