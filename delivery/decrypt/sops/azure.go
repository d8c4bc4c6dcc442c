package sops

import (
	"cmp"
	"net/http"
	"net/url"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/security/keyvault/azkeys"
	"github.com/getsops/sops/v3/azkv"
	"github.com/getsops/sops/v3/keyservice"
	"sigs.k8s.io/yaml"
)

// azureVault decrypts with Azure Key Vault as a service principal.
type azureVault struct{ credential azcore.TokenCredential }

// principal is a service principal in the form of Flux's documentation, or in the form that az writes.
type principal struct {
	TenantID            string `json:"tenantId"`
	ClientID            string `json:"clientId"`
	ClientSecret        string `json:"clientSecret"`
	Certificate         string `json:"clientCertificate"`
	CertificatePassword string `json:"clientCertificatePassword"`
	SendChain           bool   `json:"clientCertificateSendChain"`
	AuthorityHost       string `json:"authorityHost"`
	Tenant              string `json:"tenant"`
	AppID               string `json:"appId"`
	Password            string `json:"password"`
}

// readAzure accepts only a service principal: a managed identity would be the operator's own.
func readAzure(content []byte, client *http.Client) (*azureVault, []string, string) {
	const why = "holds something else than tenantId, clientId and one of clientSecret and clientCertificate, as YAML"
	var in principal
	if err := yaml.Unmarshal(content, &in); err != nil {
		return nil, nil, why
	}
	tenant, id, secret := cmp.Or(in.TenantID, in.Tenant), cmp.Or(in.ClientID, in.AppID), cmp.Or(in.ClientSecret, in.Password)
	if authority, err := url.Parse(in.AuthorityHost); err != nil || in.AuthorityHost != "" && authority.Scheme != "https" {
		return nil, nil, "names an authorityHost that does not begin with https://"
	}
	if tenant == "" || id == "" || secret == "" && in.Certificate == "" {
		return nil, nil, why
	}
	options := optionsFor(client)
	options.Cloud = cloud.Configuration{ActiveDirectoryAuthorityHost: cmp.Or(in.AuthorityHost, cloud.AzurePublic.ActiveDirectoryAuthorityHost)}
	var credential azcore.TokenCredential
	var err error
	if secret != "" {
		credential, err = azidentity.NewClientSecretCredential(tenant, id, secret,
			&azidentity.ClientSecretCredentialOptions{ClientOptions: options, DisableInstanceDiscovery: true})
	} else {
		credential, err = in.withCertificate(tenant, id, options)
	}
	if err != nil {
		return nil, nil, why
	}
	return &azureVault{credential}, []string{secret, in.Certificate, in.CertificatePassword}, ""
}

func (p *principal) withCertificate(tenant, id string, options azcore.ClientOptions) (azcore.TokenCredential, error) {
	certificates, key, err := azidentity.ParseCertificates([]byte(p.Certificate), []byte(p.CertificatePassword))
	if err != nil {
		return nil, err
	}
	return azidentity.NewClientCertificateCredential(tenant, id, certificates, key,
		&azidentity.ClientCertificateCredentialOptions{ClientOptions: options, DisableInstanceDiscovery: true, SendCertificateChain: p.SendChain})
}

// optionsFor makes the SDK send each request through the client, and only once.
func optionsFor(client *http.Client) azcore.ClientOptions {
	return azcore.ClientOptions{Transport: client, Retry: policy.RetryOptions{MaxRetries: -1}}
}

func (a *azureVault) decryption(key *keyservice.AzureKeyVaultKey, enc string, client *http.Client) decryption {
	is := &azkv.MasterKey{VaultURL: key.VaultUrl, Name: key.Name, Version: key.Version, EncryptedKey: enc}
	azkv.NewTokenCredential(a.credential).ApplyToMasterKey(is)
	azkv.NewClientOptions(&azkeys.ClientOptions{ClientOptions: optionsFor(client)}).ApplyToMasterKey(is)
	return is.DecryptContext
}
