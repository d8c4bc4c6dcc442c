package sops

import (
	"fmt"

	"github.com/getsops/sops/v3/keyservice"
)

// describe returns the kind and name of a key for a message.
func describe(key *keyservice.Key) string {
	switch k := key.KeyType.(type) {
	case *keyservice.Key_AgeKey:
		return fmt.Sprintf("age %.100q", k.AgeKey.Recipient)
	case *keyservice.Key_PgpKey:
		return fmt.Sprintf("OpenPGP %.100q", k.PgpKey.Fingerprint)
	case *keyservice.Key_KmsKey:
		return fmt.Sprintf("AWS KMS %.200q", k.KmsKey.Arn)
	case *keyservice.Key_GcpKmsKey:
		return fmt.Sprintf("GCP KMS %.200q", k.GcpKmsKey.ResourceId)
	case *keyservice.Key_AzureKeyvaultKey:
		return fmt.Sprintf("Azure Key Vault %.200q", k.AzureKeyvaultKey.VaultUrl+"/keys/"+k.AzureKeyvaultKey.Name)
	case *keyservice.Key_VaultKey:
		return fmt.Sprintf("Vault %.200q", k.VaultKey.VaultAddress+"/v1/"+k.VaultKey.EnginePath+"/keys/"+k.VaultKey.KeyName)
	case *keyservice.Key_HckmsKey:
		return fmt.Sprintf("Huawei Cloud KMS %.100q", k.HckmsKey.KeyId)
	}
	return "a key of an unknown kind"
}
