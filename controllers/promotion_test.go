package controllers

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// TestHealthyVersionsArePromoted from staging to production: at once, not against a person, and with approval only after the confirmation.
func TestHealthyVersionsArePromoted(t *testing.T) {
	n := newTeam(t, "promotes")
	app := func(project, version string) map[string]string {
		files := map[string]string{}
		for _, name := range []string{"web", "other-" + project} {
			files["projects/"+project+"/apps/"+name+"/app.yaml"] = fmt.Sprintf(imageHead, name, "  image: {reference: 'registry.example/web:"+version+"', replicas: 0} # "+project+"\n")
		}
		return files
	}
	project := func(name, spec string) map[string]string {
		return map[string]string{"projects/" + name + "/project.yaml": fmt.Sprintf(projectFile, name) + spec}
	}
	all := func(files ...map[string]string) map[string]string {
		sum := map[string]string{}
		for _, some := range files {
			for file, text := range some {
				sum[file] = text
			}
		}
		return sum
	}
	n.push(all(project("staging", ""), project("production", "spec: {promotion: {from: staging, healthyFor: 1s}}\n"), app("staging", "v1"), app("production", "v1")))
	n.ready(n.app("staging", "web"), n.app("production", "web"))
	production := &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.HomeNamespace(n.name), Name: "production"}}
	runs := func(version string) {
		t.Helper()
		web := n.app("production", "web")
		n.eventually(func() error {
			err := n.admin.Get(t.Context(), client.ObjectKeyFromObject(web), web)
			if err == nil && web.Spec.Image.Reference != "registry.example/web:"+version {
				err = fmt.Errorf("production has %s", web.Spec.Image.Reference)
			}
			return err
		})
		n.ready(web)
	}

	n.push(app("staging", "v2"))
	runs("v2")
	head := n.repo.Pull()
	if text, want := n.repo.Read("projects/production/apps/web/app.yaml"), app("production", "v2")["projects/production/apps/web/app.yaml"]; text != want {
		t.Errorf("the file is\n%s\nwant\n%s", text, want)
	}
	if text := n.repo.Read("projects/production/apps/other-production/app.yaml"); !strings.Contains(text, "web:v1") {
		t.Errorf("an app without a counterpart has\n%s", text)
	}
	n.eventually(func() error {
		err := n.admin.Get(t.Context(), client.ObjectKeyFromObject(production), production)
		want := "image.reference: registry.example/web:v1 → registry.example/web:v2"
		if p := production.Status.Promoted; err == nil && (len(p) != 1 || p[0].App != "web" || p[0].Commit != head || p[0].Changes != want) {
			err = fmt.Errorf("status.promoted is %+v", p)
		}
		return err
	})
	n.eventually(func() error { return n.has(v1alpha1.PromotionPendingCondition, production) })

	// A person's rollback stays, also when the condition was looked at again.
	rollback := n.push(app("production", "v1"))
	runs("v1")
	n.push(all(project("production", "spec: {promotion: {from: staging, healthyFor: 1s, approval: Annotation}}\n")))
	n.ready(production)
	if n.repo.Pull(); !strings.Contains(n.repo.Read("projects/production/apps/web/app.yaml"), "web:v1") {
		t.Errorf("the rollback of %s was undone", rollback)
	}

	n.push(app("staging", "v3"))
	message := n.until(production, v1alpha1.PromotionPendingCondition, metav1.ConditionTrue, v1alpha1.PromotionHeldReason)
	token := regexp.MustCompile(`confirm-promotion=([0-9a-f]{8})$`).FindStringSubmatch(message)
	if token == nil || !strings.HasPrefix(message, "web: image.reference: registry.example/web:v1 → registry.example/web:v3; to confirm, an owner of the tenant with the role admin") {
		t.Fatalf("the message is %q", message)
	}
	if held := production.Status.HeldPromotions; len(held) != 1 || held[0].App != "web" || held[0].Token != token[1] {
		t.Errorf("held promotions are %+v", held)
	}
	runs("v1")
	before := production.DeepCopy()
	metav1.SetMetaDataAnnotation(&production.ObjectMeta, v1alpha1.ConfirmPromotionAnnotation, "other,"+token[1])
	if err := n.admin.Patch(t.Context(), production, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	runs("v3")
	n.eventually(func() error { return n.has(v1alpha1.PromotionPendingCondition, production) })
	if held := production.Status.HeldPromotions; len(held) != 0 {
		t.Errorf("held promotions are %+v", held)
	}

	// A project that is not there is named.
	n.repo.Pull()
	n.push(project("production", "spec: {promotion: {from: stage}}\n"))
	message = n.until(production, v1alpha1.PromotionPendingCondition, metav1.ConditionTrue, v1alpha1.PromotionRefusedReason)
	if !strings.Contains(message, "the tenant has no project stage") {
		t.Errorf("the message is %q", message)
	}
	n.ready(production)
}
