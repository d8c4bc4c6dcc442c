// Package service lets a sandboxed process that decrypts, and that cannot open connections, use key services: AWS KMS, GCP KMS, Azure Key
// Vault and HashiCorp Vault. The process sends each HTTP request to the operator (Transport). The operator (Proxy) sends it on only if it
// goes to a service for which the Secret has credentials.
package service

import (
	"net/http"
	"time"

	"github.com/kubeop/kubeop/delivery/message"
)

// The keys of a Secret with credentials for services. They are the same as Flux's, except VaultAddress and CA.
const (
	AWS   = "sops.aws-kms"
	GCP   = "sops.gcp-kms"
	Azure = "sops.azure-kv"
	Vault = "sops.vault-token"
	// VaultAddress is the only Vault that gets the token, if it is set.
	VaultAddress = "sops.vault-address"
	// CA holds certificate authorities in PEM, trusted in addition to the system's.
	CA = "ca.crt"
)

// Limits of the requests for one app, and of their total time, because the process is reserved for it meanwhile.
const (
	maxRequests     = 200
	maxRequestBytes = 128 << 10
	maxAnswerBytes  = 1 << 20
	maxTime         = 10 * time.Second
)

// request is an HTTP request that the process sends to the operator.
type request struct {
	Method, URL string
	Header      http.Header
	Body        []byte
}

// response is the operator's answer to a request.
type response struct {
	Status int
	Header http.Header
	Body   []byte
}

// reader bounds a message, which has the headers and a body of bytes.
var reader = message.NewReader(message.Limits{Items: 10_000, Depth: 32})
