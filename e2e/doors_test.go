//go:build e2e

package e2e

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/e2e/stage"
)

// TestSourcesReachNothingOfTheCluster checks that apps cannot fetch from another tenant's Service or pod, or from the API server by
// address or name.
func TestSourcesReachNothingOfTheCluster(t *testing.T) {
	n := newTeam(t, "bridge")
	service := &corev1.Service{}
	pods := &corev1.PodList{}
	until(t, "the sample app web has a pod", func(ctx context.Context) error {
		if err := platform.Client.Get(ctx, client.ObjectKey{Namespace: "kubeop-acme-shop", Name: "web"}, service); err != nil {
			return err
		}
		err := platform.Client.List(ctx, pods, client.InNamespace("kubeop-acme-shop"), client.MatchingLabels{v1alpha1.AppLabel: "web"})
		if err == nil && (len(pods.Items) == 0 || pods.Items[0].Status.PodIP == "") {
			err = fmt.Errorf("%d pods", len(pods.Items))
		}
		return err
	})
	for app, host := range map[string]string{
		"service": service.Spec.ClusterIP, "pod": pods.Items[0].Status.PodIP + ":8080", "name": "web.kubeop-acme-shop.svc",
		"api": "kubernetes.default.svc:443",
	} {
		n.write("projects/shop/apps/"+app+"/app.yaml", fmt.Sprintf(
			"apiVersion: paas.kubeop.io/v1alpha1\nkind: App\nmetadata: {name: %s}\nspec: {type: Git, git: {url: 'http://%s/a.git'}}\n", app, host))
	}
	n.push("Look around")
	for _, app := range []string{"service", "pod", "name", "api"} {
		n.waitForReady(app, v1alpha1.InvalidSourceReason, "which no source may reach")
	}
}

// TestMetricsNeedAnAccount reads the metrics without an account, and with one that has the chart's role.
func TestMetricsNeedAnAccount(t *testing.T) {
	service := &corev1.Service{}
	must(t, platform.Client.Get(t.Context(), client.ObjectKey{Namespace: stage.Namespace, Name: "kubeop"}, service))
	for _, args := range []string{
		"create serviceaccount scraper --namespace default",
		"create clusterrolebinding scraper --clusterrole kubeop-metrics-reader --serviceaccount default:scraper",
	} {
		_, err := platform.Kubectl(t.Context(), strings.Fields(args)...)
		must(t, err)
	}
	token, err := platform.Kubectl(t.Context(), "create", "token", "scraper", "--namespace", "default")
	must(t, err)
	asker := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	for who, want := range map[string]int{"": http.StatusUnauthorized, strings.TrimSpace(token): http.StatusOK} {
		until(t, fmt.Sprintf("the metrics are answered with %d", want), func(ctx context.Context) error {
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+service.Spec.ClusterIP+":8080/metrics", nil)
			if err != nil {
				return err
			}
			if who != "" {
				request.Header.Set("Authorization", "Bearer "+who)
			}
			response, err := asker.Do(request)
			if err != nil {
				return err
			}
			defer response.Body.Close()
			text, err := io.ReadAll(response.Body)
			if err == nil && (response.StatusCode != want || strings.Contains(string(text), "kubeop_hook_connections_crowded_out_total") != (want == http.StatusOK)) {
				err = fmt.Errorf("%s: %.100q", response.Status, text)
			}
			return err
		})
	}
}
