package controllers

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// TestAChosenImageIsWrittenToGit: the file says what runs, the operator writes it there, and a person's rollback stays until the next tag.
func TestAChosenImageIsWrittenToGit(t *testing.T) {
	n := newTeam(t, "writes")
	n.push(map[string]string{"projects/shop/project.yaml": fmt.Sprintf(projectFile, "shop")})
	name, digest := written.Listener.Addr().String()+"/web", "@sha256:"+strings.Repeat("a", 64)
	declared := func(reference string) map[string]string {
		return imageFile("web", "  image: {reference: '"+reference+"', replicas: 0, policy: {semver: ^1, interval: 1s, write: Commit}} # keep\n")
	}
	runs := func(want string) *v1alpha1.App {
		t.Helper()
		app := n.app("shop", "web")
		n.eventually(func() error {
			deployment := &appsv1.Deployment{}
			err := n.admin.Get(t.Context(), client.ObjectKey{Namespace: app.Namespace, Name: "web"}, deployment)
			if err == nil && deployment.Spec.Template.Spec.Containers[0].Image != want {
				err = fmt.Errorf("the Deployment runs %s, want %s", deployment.Spec.Template.Spec.Containers[0].Image, want)
			}
			return err
		})
		n.ready(app)
		return app
	}
	n.push(declared(name))
	app := runs(name + ":1.0.0" + digest)
	n.eventually(func() error {
		head := n.repo.Pull()
		err := n.admin.Get(t.Context(), client.ObjectKeyFromObject(app), app)
		if w := app.Status.Image; err == nil && (w == nil || w.Written == nil || w.Written.Commit != head || app.Spec.Image.Reference != w.Written.Reference) {
			err = fmt.Errorf("status.image is %+v, the spec says %s, and the branch is at %s", w, app.Spec.Image.Reference, head)
		}
		return err
	})
	if text := n.repo.Read("projects/shop/apps/web/app.yaml"); text != declared(name + ":1.0.0" + digest)["projects/shop/apps/web/app.yaml"] {
		t.Errorf("the file is\n%s", text)
	}

	written.set("1.0.0", "1.1.0")
	runs(name + ":1.1.0" + digest)
	n.repo.Pull()
	rollback := n.push(declared(name + ":1.0.0"))
	app = runs(name + ":1.0.0")
	if got := app.Status.Image; got.Tag != "1.1.0" || got.Written == nil || got.Written.Reference != got.Reference {
		t.Errorf("status.image is %+v", got)
	}
	asked := written.requests()
	n.eventually(func() error { // The policy is looked at a few times.
		if now := written.requests(); now < asked+4 {
			return fmt.Errorf("the registry was asked %d times", now-asked)
		}
		return nil
	})
	if head := n.repo.Pull(); !strings.HasSuffix(rollback, head) {
		t.Error("the rollback was undone")
	}
	written.set("1.0.0", "1.1.0", "1.2.0")
	runs(name + ":1.2.0" + digest)

	// Git says what runs, also if the policy finds nothing.
	n.repo.Pull()
	files := declared(name + ":1.2.0" + digest)
	for file, text := range files {
		files[file] = strings.Replace(text, "^1,", "^9,", 1)
	}
	n.push(files)
	message := n.until(app, v1alpha1.ImageKeptCondition, metav1.ConditionTrue, v1alpha1.SourceNotFoundReason)
	if want := name + ":1.2.0" + digest + " stays: choosing a tag of " + name + ": none of the 3 tags"; !strings.HasPrefix(message, want) {
		t.Errorf("the message is %q, want %q", message, want)
	}
	n.ready(app)
}
