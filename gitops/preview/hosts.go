package preview

import (
	"fmt"
	"strings"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// SharedHost says which host and path the pattern gives to several hosts of the project, so that a preview would serve it twice; "" if there is
// none. The apps are those of the preview, in an order that does not change.
func SharedHost(pattern string, apps []*v1alpha1.App) string {
	if strings.Contains(pattern, "{host}") { // Then it keeps apart what app.yaml keeps apart.
		return ""
	}
	of := map[string]string{}
	for _, app := range apps {
		hosts := app.Spec.Hosts
		if app.Spec.Host != "" {
			hosts = append([]v1alpha1.AppHost{{Host: app.Spec.Host}}, hosts...)
		}
		for _, h := range hosts {
			at := h.Host + strings.TrimRight(h.Path, "/")
			first, there := of[at]
			if !there {
				of[at] = app.Name
				continue
			}
			who := fmt.Sprintf("apps %s and %s both have %s", first, app.Name, at)
			if first == app.Name {
				who = fmt.Sprintf("app %s has %s twice", app.Name, at)
			}
			return who + `, because spec.previews.host in project.yaml makes one host of all: write {host} into it in Git, such as "{branch}-{host}"`
		}
	}
	return ""
}
