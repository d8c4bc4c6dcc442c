package health

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// Lacks says in words what keeps an object from being healthy by its own status; "" when it is. They may quote what
// controllers wrote.
func Lacks(o *unstructured.Unstructured) (string, error) {
	found, err := judge(o)
	if err != nil || found.state == healthy {
		return "", err
	}
	return oneLine(found.why), nil
}
