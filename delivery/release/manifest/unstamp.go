package manifest

import (
	"maps"
	"strings"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// Unstamped returns a manifest without kubeop's own labels, on objects and on templates in them.
func Unstamped(text string) (string, error) {
	docs, err := Parse(text)
	if err != nil {
		return "", err
	}
	for _, u := range Objects(docs) {
		unstamp(u.Object)
	}
	return Write(docs)
}

func unstamp(node map[string]any) {
	if metadata, ok := node["metadata"].(map[string]any); ok {
		if labels, ok := metadata["labels"].(map[string]any); ok {
			maps.DeleteFunc(labels, func(k string, _ any) bool { return strings.HasPrefix(k, v1alpha1.Group+"/") })
		}
	}
	for _, child := range node {
		if inner, ok := child.(map[string]any); ok {
			unstamp(inner)
		}
	}
}
