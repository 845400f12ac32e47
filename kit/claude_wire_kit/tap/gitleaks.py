"""Patterns of tokens from gitleaks, for the redaction of recordings.

Source: config/gitleaks.toml of https://github.com/gitleaks/gitleaks, commit b58d3f102cf3 (July 2026). This module has
only the rules that recognise a token by its own form. Some gitleaks rules need the name of the provider near the token;
:mod:`.chance` finds such tokens without the name. Wider patterns in :data:`.secrets.KINDS` cover the other rules.
Changes for :mod:`re`: flags in the middle became groups, groups do not capture, and the end of a token is not checked.

Copyright (c) 2019 Zachary Rice, MIT License. THIRD_PARTY_LICENSES, which each wheel contains, has its text.
"""

from __future__ import annotations

#: Name of a rule -> hints and a pattern. The pattern runs only on a word that contains a hint (compared in lower case).
GITLEAKS: dict[str, tuple[tuple[str, ...], str]] = {
    "1password-secret-key": (
        ("a3-",),
        r"(?<![A-Za-z0-9])A3-[A-Z0-9]{6}-(?:(?:[A-Z0-9]{11})|(?:[A-Z0-9]{6}-[A-Z0-9]{5}))-[A-Z0-9]{5}-[A-Z0-9]{5}-[A-Z0-9]{5}\b",
    ),
    "1password-service-account-token": (("ops_",), r"ops_eyJ[a-zA-Z0-9+/]{250,}={0,3}"),
    "adobe-client-secret": (("p8e-",), r"(?<![A-Za-z0-9])(?:p8e-(?i:[a-z0-9]{32}))"),
    "airtable-personnal-access-token": (("pat",), r"(?<![A-Za-z0-9])(?:pat[A-Za-z0-9]{14}\.[a-f0-9]{64})\b"),
    "alibaba-access-key-id": (("ltai",), r"(?<![A-Za-z0-9])(?:LTAI(?i:[a-z0-9]{20}))"),
    "artifactory-api-key": (("akcp",), r"(?<![A-Za-z0-9])AKCp[A-Za-z0-9]{69}\b"),
    "artifactory-reference-token": (("cmvmd",), r"(?<![A-Za-z0-9])cmVmd[A-Za-z0-9]{59}\b"),
    "authress-service-client-access-key": (
        ("sc_", "ext_", "scauth_", "authress_"),
        r"(?<![A-Za-z0-9])(?:(?:sc|ext|scauth|authress)_(?i:[a-z0-9]{5,30}\.[a-z0-9]{4,6}\.(?-i:acc)[_-][a-z0-9-]{10,32}\.[a-z0-9+/_=-]{30,120}))",
    ),
    "aws-access-token": (
        ("a3t", "akia", "asia", "abia", "acca"),
        r"(?<![A-Za-z0-9])(?:(?:A3T[A-Z0-9]|AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16})\b",
    ),
    "aws-amazon-bedrock-api-key-long-lived": (("absk",), r"(?<![A-Za-z0-9])(?:ABSK[A-Za-z0-9+/]{109,269}={0,2})"),
    "aws-amazon-bedrock-api-key-short-lived": (("bedrock-api-key-",), r"bedrock-api-key-YmVkcm9jay5hbWF6b25hd3MuY29t"),
    "azure-ad-client-secret": (("q~",), r"(?:[a-zA-Z0-9_~.]{3}\dQ~[a-zA-Z0-9_~.-]{31,34})"),
    "clickhouse-cloud-api-secret-key": (("4b1d",), r"(?<![A-Za-z0-9])(?:4b1d[A-Za-z0-9]{38})\b"),
    "clojars-api-token": (("clojars_",), r"(?i:CLOJARS_[a-z0-9]{60})"),
    "cloudflare-origin-ca-key": (("v1.0-",), r"(?<![A-Za-z0-9])(?:v1\.0-[a-f0-9]{24}-[a-f0-9]{146})"),
    "digitalocean-access-token": (("doo_v1_",), r"(?<![A-Za-z0-9])(?:doo_v1_[a-f0-9]{64})"),
    "digitalocean-pat": (("dop_v1_",), r"(?<![A-Za-z0-9])(?:dop_v1_[a-f0-9]{64})"),
    "digitalocean-refresh-token": (("dor_v1_",), r"(?<![A-Za-z0-9])(?i:(?:dor_v1_[a-f0-9]{64}))"),
    "doppler-api-token": (("dp.pt.",), r"dp\.pt\.(?i:[a-z0-9]{43})"),
    "duffel-api-token": (("duffel_",), r"duffel_(?:test|live)_(?i:[a-z0-9_\-=]{43})"),
    "dynatrace-api-token": (("dt0c01.",), r"dt0c01\.(?i:[a-z0-9]{24}\.[a-z0-9]{64})"),
    "easypost-api-token": (("ezak",), r"(?<![A-Za-z0-9])EZAK(?i:[a-z0-9]{54}\b)"),
    "easypost-test-api-token": (("eztk",), r"(?<![A-Za-z0-9])EZTK(?i:[a-z0-9]{54}\b)"),
    "facebook-page-access-token": (("eaam", "eaac"), r"(?<![A-Za-z0-9])(?:EAA[MC](?i:[a-z0-9]{100,}))"),
    "flutterwave-encryption-key": (("flwseck_test",), r"FLWSECK_TEST-(?i:[a-h0-9]{12})"),
    "flutterwave-public-key": (("flwpubk_test",), r"FLWPUBK_TEST-(?i:[a-h0-9]{32}-X)"),
    "flutterwave-secret-key": (("flwseck_test",), r"FLWSECK_TEST-(?i:[a-h0-9]{32}-X)"),
    "flyio-access-token": (
        ("fo1_", "fm1", "fm2_"),
        r"(?<![A-Za-z0-9])(?:(?:fo1_[\w-]{43}|fm1[ar]_[a-zA-Z0-9+\/]{100,}={0,3}|fm2_[a-zA-Z0-9+\/]{100,}={0,3}))",
    ),
    "frameio-api-token": (("fio-u-",), r"fio-u-(?i:[a-z0-9\-_=]{64})"),
    "gitlab-feature-flag-client-token": (("glffct-",), r"glffct-[0-9a-zA-Z_\-]{20}"),
    "gitlab-incoming-mail-token": (("glimt-",), r"glimt-[0-9a-zA-Z_\-]{25}"),
    "gitlab-kubernetes-agent-token": (("glagent-",), r"glagent-[0-9a-zA-Z_\-]{50}"),
    "gitlab-oauth-app-secret": (("gloas-",), r"gloas-[0-9a-zA-Z_\-]{64}"),
    "gitlab-rrt": (("gr1348941",), r"GR1348941[\w-]{20}"),
    "gitlab-scim-token": (("glsoat-",), r"glsoat-[0-9a-zA-Z_\-]{20}"),
    "gitlab-session-cookie": (("_gitlab_session=",), r"_gitlab_session=[0-9a-z]{32}"),
    "grafana-api-key": (("eyjrijoi",), r"(?<![A-Za-z0-9])(?i:(?:eyJrIjoi[A-Za-z0-9]{70,400}={0,3}))"),
    "harness-api-key": (("pat.", "sat."), r"(?:pat|sat)\.[a-zA-Z0-9_-]{22}\.[a-zA-Z0-9]{24}\.[a-zA-Z0-9]{20}"),
    "hashicorp-tf-api-token": (("atlasv1",), r"(?i:[a-z0-9]{14}\.(?-i:atlasv1)\.[a-z0-9\-_=]{60,70})"),
    "huggingface-access-token": (("hf_",), r"(?<![A-Za-z0-9])(?:hf_(?i:[a-z]{34}))"),
    "huggingface-organization-api-token": (("api_org_",), r"(?<![A-Za-z0-9])(?:api_org_(?i:[a-z]{34}))"),
    "infracost-api-token": (("ico-",), r"(?<![A-Za-z0-9])(?:ico-[a-zA-Z0-9]{32})"),
    "intra42-client-secret": (
        ("s-s4t2ud-", "s-s4t2af-"),
        r"(?<![A-Za-z0-9])(?:s-s4t2(?:ud|af)-(?i:[abcdef0123456789]{64}))",
    ),
    "jwt": (
        ("ey",),
        r"(?<![A-Za-z0-9])(?:ey[a-zA-Z0-9]{17,}\.ey[a-zA-Z0-9\/\\_-]{17,}\.(?:[a-zA-Z0-9\/\\_-]{10,}={0,2})?)",
    ),
    "maxmind-license-key": (("_mmk",), r"(?<![A-Za-z0-9])(?:[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk)"),
    "microsoft-teams-webhook": (
        ("webhook.office.com", "webhookb2", "incomingwebhook"),
        r"https://[a-z0-9]+\.webhook\.office\.com/webhookb2/[a-z0-9]{8}-(?:[a-z0-9]{4}-){3}[a-z0-9]{12}@[a-z0-9]{8}-(?:[a-z0-9]{4}-){3}[a-z0-9]{12}/IncomingWebhook/[a-z0-9]{32}/[a-z0-9]{8}-(?:[a-z0-9]{4}-){3}[a-z0-9]{12}",
    ),
    "octopus-deploy-api-key": (("api-",), r"(?<![A-Za-z0-9])(?:API-[A-Z0-9]{26})"),
    "openai-api-key": (
        ("t3blbkfj",),
        r"(?<![A-Za-z0-9])(?:sk-(?:proj|svcacct|admin)-(?:[A-Za-z0-9_-]{74}|[A-Za-z0-9_-]{58})T3BlbkFJ(?:[A-Za-z0-9_-]{74}|[A-Za-z0-9_-]{58})\b|sk-[a-zA-Z0-9]{20}T3BlbkFJ[a-zA-Z0-9]{20})",
    ),
    "openshift-user-token": (("sha256~",), r"(?<![A-Za-z0-9])(?:sha256~[\w-]{43})"),
    "planetscale-api-token": (("pscale_tkn_",), r"(?<![A-Za-z0-9])(?:pscale_tkn_(?i:[\w=\.-]{32,64}))"),
    "planetscale-oauth-token": (("pscale_oauth_",), r"(?<![A-Za-z0-9])(?:pscale_oauth_[\w=\.-]{32,64})"),
    "planetscale-password": (("pscale_pw_",), r"(?<![A-Za-z0-9])(?i:(?:pscale_pw_(?i:[\w=\.-]{32,64})))"),
    "prefect-api-token": (("pnu_",), r"(?<![A-Za-z0-9])(?:pnu_[a-zA-Z0-9]{36})"),
    "readme-api-token": (("rdme_",), r"(?<![A-Za-z0-9])(?:rdme_[a-z0-9]{70})"),
    "scalingo-api-token": (("tk-us-",), r"(?<![A-Za-z0-9])(?:tk-us-[\w-]{48})"),
    "sendgrid-api-token": (("sg.",), r"(?<![A-Za-z0-9])(?:SG\.(?i:[a-z0-9=_\-\.]{66}))"),
    "sendinblue-api-token": (("xkeysib-",), r"(?<![A-Za-z0-9])(?:xkeysib-[a-f0-9]{64}\-(?i:[a-z0-9]{16}))"),
    "settlemint-application-access-token": (("sm_aat",), r"(?<![A-Za-z0-9])(?:sm_aat_[a-zA-Z0-9]{16})"),
    "settlemint-personal-access-token": (("sm_pat",), r"(?<![A-Za-z0-9])(?:sm_pat_[a-zA-Z0-9]{16})"),
    "settlemint-service-access-token": (("sm_sat",), r"(?<![A-Za-z0-9])(?:sm_sat_[a-zA-Z0-9]{16})"),
    "shippo-api-token": (("shippo_",), r"(?<![A-Za-z0-9])(?:shippo_(?:live|test)_[a-fA-F0-9]{40})"),
    "shopify-access-token": (("shpat_",), r"shpat_[a-fA-F0-9]{32}"),
    "shopify-custom-access-token": (("shpca_",), r"shpca_[a-fA-F0-9]{32}"),
    "shopify-private-app-access-token": (("shppa_",), r"shppa_[a-fA-F0-9]{32}"),
    "shopify-shared-secret": (("shpss_",), r"shpss_[a-fA-F0-9]{32}"),
    "slack-app-token": (("xapp",), r"(?i:xapp-\d-[A-Z0-9]+-\d+-[a-z0-9]+)"),
    "slack-bot-token": (("xoxb",), r"xoxb-[0-9]{10,13}-[0-9]{10,13}[a-zA-Z0-9-]*"),
    "slack-config-access-token": (("xoxe.xoxb-", "xoxe.xoxp-"), r"(?i:xoxe.xox[bp]-\d-[A-Z0-9]{163,166})"),
    "slack-config-refresh-token": (("xoxe-",), r"(?i:xoxe-\d-[A-Z0-9]{146})"),
    "slack-legacy-bot-token": (("xoxb",), r"xoxb-[0-9]{8,14}-[a-zA-Z0-9]{18,26}"),
    "slack-legacy-token": (("xoxo", "xoxs"), r"xox[os]-\d+-\d+-\d+-[a-fA-F\d]+"),
    "slack-legacy-workspace-token": (("xoxa", "xoxr"), r"xox[ar]-(?:\d-)?[0-9a-zA-Z]{8,48}"),
    "slack-user-token": (("xoxp-", "xoxe-"), r"xox[pe](?:-[0-9]{10,13}){3}-[a-zA-Z0-9-]{28,34}"),
    "slack-webhook-url": (
        ("hooks.slack.com",),
        r"(?:https?://)?hooks.slack.com/(?:services|workflows|triggers)/[A-Za-z0-9+/]{43,56}",
    ),
    "square-access-token": (("sq0atp-", "eaaa"), r"(?<![A-Za-z0-9])(?:(?:EAAA|sq0atp-)[\w-]{22,60})"),
    "stripe-access-token": (
        ("sk_test", "sk_live", "sk_prod", "rk_test", "rk_live", "rk_prod"),
        r"(?<![A-Za-z0-9])(?:(?:sk|rk)_(?:test|live|prod)_[a-zA-Z0-9]{10,99})",
    ),
    "twilio-api-key": (("sk",), r"SK[0-9a-fA-F]{32}"),
}
