package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// TestMetricsNeedAuthorization requests the metrics without a token, as an account without rights, and as one with the chart's role. A standby
// answers too.
func TestMetricsNeedAuthorization(t *testing.T) {
	k := newKilled(t, "scraped")
	tokens := scrapers(t)
	addresses := map[string]string{}
	for _, name := range []string{"leader", "standby"} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		addresses[name] = listener.Addr().String()
		if err := listener.Close(); err != nil {
			t.Fatal(err)
		}
		operator := k.start("METRICS_ADDR="+addresses[name], "LEADER_ELECT=true", "DATA_DIR="+t.TempDir())
		t.Cleanup(func() { k.kill(operator) })
		k.eventually("the "+name+" serves", func() error {
			_, _, err := scrape(t.Context(), "https://"+addresses[name]+"/metrics", "")
			return err
		})
	}
	for name, address := range addresses {
		for _, c := range []struct {
			path, who string
			want      int
			text      string
		}{
			{"/metrics", "", http.StatusUnauthorized, "Unauthorized"}, {"/metrics", "stranger", http.StatusForbidden, "denied"},
			// For an invalid token the review itself fails.
			{"/metrics", "nonsense", http.StatusInternalServerError, "Authentication failed"},
			{"/metrics", "prometheus", http.StatusOK, "controller_runtime_"}, {"/version", "", http.StatusUnauthorized, "Unauthorized"},
			// Kubernetes permits every account to get this path, because its own API server has it.
			{"/version", "stranger", http.StatusOK, "kubeop-operator"},
		} {
			code, text, err := scrape(t.Context(), "https://"+address+c.path, tokens[c.who])
			if err != nil || code != c.want || !strings.Contains(text, c.text) {
				t.Errorf("%s of the %s as %q: %d, %v, %.100q", c.path, name, c.who, code, err, text)
			}
		}
		if code, text, err := scrape(t.Context(), "http://"+address+"/metrics", tokens["prometheus"]); err == nil && code == http.StatusOK {
			t.Errorf("the %s serves without TLS: %.100q", name, text)
		}
	}
}

// TestMetricsCanBeOpen: administrators can turn off authorization and TLS.
func TestMetricsCanBeOpen(t *testing.T) {
	k := newKilled(t, "open")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	operator := k.start("METRICS_ADDR="+address, "METRICS_SECURE=false")
	defer k.kill(operator)
	k.eventually("it serves", func() error {
		code, text, err := scrape(t.Context(), "http://"+address+"/metrics", "")
		if err == nil && (code != http.StatusOK || !strings.Contains(text, "controller_runtime_")) {
			err = fmt.Errorf("%d: %.100q", code, text)
		}
		return err
	})
}

// scrapers creates two accounts, one of which has the chart's role, and returns their tokens.
func scrapers(t *testing.T) map[string]string {
	t.Helper()
	api, err := kubernetes.NewForConfig(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	tokens := map[string]string{"nonsense": "nonsense"}
	for _, name := range []string{"stranger", "prometheus"} {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
		if _, err := api.CoreV1().ServiceAccounts("default").Create(t.Context(), account, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		token, err := api.CoreV1().ServiceAccounts("default").CreateToken(t.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		tokens[name] = token.Status.Token
	}
	_, err = api.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "prometheus"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "kubeop-metrics-reader"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "default", Name: "prometheus"}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return tokens
}

// scrape sends a request, with a bearer token unless that is empty.
func scrape(ctx context.Context, url, token string) (int, string, error) {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, "", err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return 0, "", err
	}
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text), errors.Join(err, response.Body.Close())
}
