package update

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

func TestTheFileAndTheBranchOfAnUpdate(t *testing.T) {
	u := Update{Branch: "Acme/shop 1.2_0!", App: &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.FolderAnnotation: "projects/shop/apps/web"}}}}
	if u.File() != "projects/shop/apps/web/app.yaml" || u.ProposedOn() != "kubeop/acme-shop-1-2-0" {
		t.Errorf("got %s on %s", u.File(), u.ProposedOn())
	}
	u.App.Annotations, u.Branch = nil, strings.Repeat("a", 101)
	if u.File() != "app.yaml" || u.ProposedOn() != "kubeop/"+strings.Repeat("a", 100) {
		t.Errorf("without a folder: %s on %s", u.File(), u.ProposedOn())
	}
}
